"""Which node groups the target's NPU takes, and the sentence for every node that it does not."""

from __future__ import annotations

from dataclasses import dataclass, field

import onnx_ir as ir

from hexqdq.ops import OPS
from hexqdq.partition.match import Match, Mismatch, match
from hexqdq.partition.view import GraphView, is_dequantize, is_quantize
from hexqdq.target import Target


@dataclass
class Support:
    """Accepted units in graph order, per node the reason to stay on the CPU, and the nodes of refused groups."""

    accepted: list[Match] = field(default_factory=list)
    reasons: dict[ir.Node, str] = field(default_factory=dict)
    grouped: set[ir.Node] = field(default_factory=set)


def find_support(view: GraphView, target: Target) -> Support:
    """Matches every op of the graph and evaluates its limits against the target."""
    support = Support()
    taken: set[ir.Node] = set()
    for node in view.nodes:
        if node in taken or is_dequantize(node):
            continue
        try:
            found = match(view, node)
        except Mismatch as mismatch:
            support.reasons[node] = str(mismatch)
            continue
        taken.update(found.nodes)
        refusal = OPS[found.unit.op_type].refusal(found.unit, target)
        if refusal is None:
            support.accepted.append(found)
        else:
            _refuse(support, found, node, refusal)
    accepted = {node for found in support.accepted for node in found.nodes}
    support.reasons = {node: reason for node, reason in support.reasons.items() if node not in accepted}
    return support


def _refuse(support: Support, found: Match, head: ir.Node, refusal: str) -> None:
    support.grouped.update(found.nodes)
    for node in found.nodes:
        support.reasons[node] = f"it belongs to {head.op_type} {head.name!r}, which stays on the CPU"
    support.reasons[head] = refusal


def is_lone_quantize(view: GraphView, node: ir.Node) -> bool:
    """Whether a Q takes a float value that no DQ makes: a segment can absorb it at its edge."""
    source = node.inputs[0]
    if not is_quantize(node) or source is None or isinstance(view.params(node), str):
        return False
    return source.dtype == ir.DataType.FLOAT and not is_dequantize(source.producer())
