"""One record per node: its segment, or the reason why it stays on the CPU."""

from __future__ import annotations

from collections.abc import Collection

import onnx_ir as ir

from hexqdq.ops import OPS
from hexqdq.ops.unit import QuantUnit
from hexqdq.partition.attributes import attributes_of
from hexqdq.partition.cut import Cut
from hexqdq.partition.view import GraphView, is_dequantize, is_quantize
from hexqdq.report import Decision


def decide(cut: Cut, delivered: Collection[str]) -> tuple[Decision, ...]:
    """The decisions in graph order; ``delivered`` are the values that segments give, floats through absorbed DQ.

    A Q or DQ counts where a unit that reads or writes through it runs.
    """
    order = [batch.segment for batch in cut.batches if batch.segment is not None]
    places = {item: order.index(number) for number, group in enumerate(cut.groups) for item in group}
    owners = _owners(cut, delivered)
    return tuple(_decision(cut, node, places, owners) for node in cut.view.nodes)


def _owners(cut: Cut, delivered: Collection[str]) -> dict[ir.Node, int]:
    """Border nodes by the first unit that they serve."""
    owners: dict[ir.Node, int] = {}
    for found in cut.support.accepted:
        item = cut.item_of[found.nodes[-1]]
        read = [cut.makers[t.name].producer() for t in found.unit.inputs if t is not None and t.name in cut.makers]
        for node in (*read, *found.dequantizers):
            if node is not None and cut.is_border(node):
                owners.setdefault(node, item)
    for node in cut.view.nodes:
        producer = node.inputs[0].producer() if is_dequantize(node) and node.inputs[0] is not None else None
        if producer in cut.match_of and node.outputs[0].name in delivered:
            owners.setdefault(node, cut.item_of[producer])
    return owners


def _decision(cut: Cut, node: ir.Node, places: dict[int, int], owners: dict[ir.Node, int]) -> Decision:
    name, op_type = str(node.name), node.op_type
    found = cut.match_of.get(node)
    if found is not None:
        macs = OPS[found.unit.op_type].macs(found.unit) if found.unit.name == name else 0
        return Decision(name, op_type, places[cut.item_of[node]], None, macs)
    if node in owners:
        return Decision(name, op_type, places[owners[node]], None, 0)
    return Decision(name, op_type, None, _reason(cut, node), float_macs(cut.view, node))


def _reason(cut: Cut, node: ir.Node) -> str:
    if is_dequantize(node):
        return _dequantize_reason(cut, node)
    reason = cut.support.reasons[node]
    source = node.inputs[0].producer() if is_quantize(node) and node.inputs[0] is not None else None
    if not is_quantize(node) or is_dequantize(source) or node in cut.support.grouped:
        return reason
    if source is None:
        return "no unit reads the integers that it makes"
    return f"it quantizes the result of {source.op_type} {source.name!r}, which stays on the CPU"


def _dequantize_reason(cut: Cut, node: ir.Node) -> str:
    params = cut.view.params(node)
    if isinstance(params, str):
        return params
    source = node.inputs[0].producer() if node.inputs[0] is not None else None
    if source in cut.match_of:
        return "its integers leave the segment as they are, because more than this node reads them"
    readers = cut.view.readers(node.outputs[0])
    if not readers:
        return "it gives a float output of the model from integers that no unit makes"
    return f"{readers[0].op_type} {readers[0].name!r}, which reads it, stays on the CPU"


def float_macs(view: GraphView, node: ir.Node) -> int:
    """Multiply-accumulates of a node that is no unit, counted as the op's row counts them."""
    spec = OPS.get(node.op_type) if node.domain == "" else None
    if spec is None or len(node.outputs) != 1:
        return 0
    tensors = [None if value is None else view.tensor(value) for value in node.inputs]
    output = view.tensor(node.outputs[0])
    if output is None:
        return 0
    unit = QuantUnit(str(node.name), node.op_type, tuple(tensors), (output,), attributes_of(node))
    return spec.macs(unit)
