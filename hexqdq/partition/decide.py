"""One record per node: its segment, or the reason why it stays on the CPU."""

from __future__ import annotations

import onnx_ir as ir

from hexqdq.ops import OPS
from hexqdq.ops.unit import QuantUnit
from hexqdq.partition.attributes import attributes_of
from hexqdq.partition.cut import Cut
from hexqdq.partition.view import GraphView, is_dequantize, is_quantize
from hexqdq.report import Decision


def decide(cut: Cut) -> tuple[Decision, ...]:
    """The decisions in graph order; a Q or DQ counts where a unit that reads or writes through it runs."""
    order = [batch.segment for batch in cut.batches if batch.segment is not None]
    places = {i: order.index(number) for number, group in enumerate(cut.groups) for i in group}
    owners = _owners(cut)
    return tuple(_decision(cut, node, places, owners) for node in cut.view.nodes)


def _owners(cut: Cut) -> dict[ir.Node, int]:
    """Border nodes by the first unit that they serve."""
    owners: dict[ir.Node, int] = {}
    for found in cut.support.accepted:
        item = cut.item_of[found.nodes[-1]]
        for tensor in found.unit.inputs:
            producer = cut.makers[tensor.name].producer() if tensor is not None and tensor.name in cut.makers else None
            if producer is not None and cut.is_border(producer):
                owners.setdefault(producer, item)
        for node in found.dequantizers:
            owners.setdefault(node, item)
    for node in cut.view.nodes:
        if is_dequantize(node) and node.inputs[0] is not None:
            producer = node.inputs[0].producer()
            if producer in cut.match_of:
                owners.setdefault(node, cut.item_of[producer])
    return owners


def _decision(cut: Cut, node: ir.Node, places: dict[int, int], owners: dict[ir.Node, int]) -> Decision:
    name, op_type = str(node.name), node.op_type
    found = cut.match_of.get(node)
    if found is not None:
        macs = OPS[found.unit.op_type].macs(found.unit) if found.unit.name == name else 0
        return Decision(name, op_type, places[cut.item_of[node]], None, macs)
    if node in owners and cut.is_border(node):
        return Decision(name, op_type, places[owners[node]], None, 0)
    return Decision(name, op_type, None, _reason(cut, node), float_macs(cut.view, node))


def _reason(cut: Cut, node: ir.Node) -> str:
    if not is_dequantize(node):
        if is_quantize(node) and node.inputs[0] is not None:
            source = node.inputs[0].producer()
            if source is not None and not is_dequantize(source) and node not in _refused_heads(cut, node):
                return f"it quantizes the result of {source.op_type} {source.name!r}, which stays on the CPU"
        return cut.support.reasons[node]
    params = cut.view.params(node)
    if isinstance(params, str):
        return params
    readers = cut.view.readers(node.outputs[0])
    if not readers:
        return "it gives a float output of the model from integers that no unit makes"
    first = readers[0]
    return f"{first.op_type} {first.name!r}, which reads it, stays on the CPU"


def _refused_heads(cut: Cut, node: ir.Node) -> set[ir.Node]:
    """The Q itself where its group was refused, so that the group's sentence stands."""
    return {node} if cut.support.reasons.get(node, "").startswith("it belongs to") else set()


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
