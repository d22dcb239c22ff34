"""CPU parts: nodes of the model as ONNX models of their own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

import onnx
import onnx_ir as ir

from hexqdq.errors import ModelError
from hexqdq.partition.cut import Cut
from hexqdq.partition.product import HostPart
from hexqdq.partition.view import GraphView, name_of


@dataclass
class HostDraft:
    """The nodes of a CPU part, copies of border nodes included, and the values it takes from outside."""

    nodes: set[ir.Node] = field(default_factory=set)
    inputs: dict[str, ir.Value] = field(default_factory=dict)
    constants: dict[str, ir.Value] = field(default_factory=dict)


def draft(cut: Cut, nodes: Iterable[ir.Node], delivered: Collection[str]) -> HostDraft:
    """A part of ``nodes``; border nodes whose result no segment delivers are copied into it."""
    drafted = HostDraft(nodes=set(nodes))
    for node in sorted(drafted.nodes, key=cut.view.position.__getitem__):
        _require(cut, drafted, node, delivered)
    return drafted


def _require(cut: Cut, drafted: HostDraft, node: ir.Node, delivered: Collection[str]) -> None:
    for value in cut.view.reads(node):
        name, producer = name_of(value), value.producer()
        if value.is_initializer():
            drafted.constants[name] = value
        elif producer in drafted.nodes:
            continue
        elif producer is not None and name not in delivered and cut.is_border(producer):
            drafted.nodes.add(producer)
            _require(cut, drafted, producer, delivered)
        else:
            drafted.inputs[name] = value


def finish(view: GraphView, drafted: HostDraft, name: str, wanted: Collection[str]) -> HostPart:
    """The draft as an ONNX model that gives the ``wanted`` ones among its values."""
    nodes = sorted(drafted.nodes, key=view.position.__getitem__)
    made = [value for node in nodes for value in node.outputs if value.name]
    outputs = [value for value in made if value.name in wanted]
    graph = onnx.helper.make_graph(
        [ir.serde.serialize_node(node) for node in nodes],
        name,
        [ir.serde.serialize_value(value) for value in drafted.inputs.values()],
        [ir.serde.serialize_value(value) for value in outputs],
        [_tensor_proto(value) for value in drafted.constants.values()],
    )
    opsets = [onnx.helper.make_opsetid(domain, version) for domain, version in view.model.opset_imports.items()]
    model = onnx.helper.make_model(
        graph, opset_imports=opsets, ir_version=view.model.ir_version, producer_name="hexqdq"
    )
    return HostPart(name, _serialized(model, name), tuple(drafted.inputs), tuple(name_of(v) for v in outputs))


def _tensor_proto(value: ir.Value) -> onnx.TensorProto:
    tensor = value.const_value
    assert tensor is not None
    if isinstance(tensor, ir.ExternalTensor):
        tensor = ir.Tensor(tensor.numpy(), dtype=tensor.dtype)
    proto = ir.serde.serialize_tensor(tensor)
    proto.name = name_of(value)
    return proto


def _serialized(model: onnx.ModelProto, name: str) -> bytes:
    try:
        return bytes(model.SerializeToString(deterministic=True))
    except Exception as error:  # protobuf refuses more than 2 GB
        raise ModelError(
            f"CPU part {name}", f"cannot be serialized: {error}", "quantize more of the model: 2 GB is the limit"
        ) from error


def wanted_values(drafts: Sequence[HostDraft], npu_reads: Iterable[str], outputs: Iterable[str]) -> set[str]:
    """Values that parts read from others, and the model's outputs."""
    return {*outputs, *npu_reads, *(name for drafted in drafts for name in drafted.inputs)}
