"""Node groups to QuantUnits: DQ* -> op -> (bias Add) -> (activations) -> Q, or a movement of bare integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from hexqdq.ops import OPS
from hexqdq.ops.elementwise.table import CHAIN
from hexqdq.ops.traits import Trait
from hexqdq.ops.unit import Array, Clamp, QuantUnit, Tensor
from hexqdq.partition.attributes import Attributes, attributes_of
from hexqdq.partition.patterns.chain import Chain, find_chain
from hexqdq.partition.view import GraphView, is_dequantize, is_quantize
from hexqdq.qtypes import QType, QuantParams


@dataclass(frozen=True, eq=False)
class Match:
    """A unit, the nodes that it alone stands for, and the DQ nodes that it reads through."""

    unit: QuantUnit
    nodes: tuple[ir.Node, ...]
    dequantizers: tuple[ir.Node, ...]

    @property
    def place(self) -> ir.Node:
        """The node where the unit stands in the graph's order: its last, its head where outputs end apart."""
        return self.nodes[-1 if len(self.unit.outputs) == 1 else 0]


class Mismatch(Exception):
    """Why a node heads no unit; the message is the sentence."""


@dataclass
class _Group:
    """A unit under construction."""

    inputs: list[Tensor | None] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    nodes: list[ir.Node] = field(default_factory=list)
    dequantizers: list[ir.Node] = field(default_factory=list)
    clamp: Clamp | None = None


def match(view: GraphView, node: ir.Node) -> Match:
    """The unit that the node heads; raises Mismatch with the reason where it heads none.

    A chain of several elementwise ops is a unit where the op alone is none, or has float constants.
    """
    try:
        found = _op_unit(view, node)
        chain = find_chain(view, node) if _has_float_constants(found.unit) else None
        return _chain_unit(view, node, chain) if chain is not None else found
    except Mismatch:
        chain = find_chain(view, node)
        if chain is None:
            raise
        return _chain_unit(view, node, chain)


def _has_float_constants(unit: QuantUnit) -> bool:
    spec = OPS[unit.op_type]
    inputs = (tensor for tensor in unit.inputs if tensor is not None)
    return spec.pointwise and not spec.activation and any(tensor.dtype is QType.F32 for tensor in inputs)


def _chain_unit(view: GraphView, head: ir.Node, chain: Chain) -> Match:
    group = _Group(nodes=list(chain.nodes))
    group.inputs.append(_dequantized(view, group, chain.source))
    group.dequantizers = list(chain.dequantizers)
    return _finish(view, head, group, chain.quantizer, CHAIN, {"program": chain.program.to_text()})


def _op_unit(view: GraphView, node: ir.Node) -> Match:
    """The unit of one op with its bias, its activations and its Q."""
    if is_quantize(node):
        return _requantization(view, node)
    if node.domain != "" or node.op_type not in OPS:
        name = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        raise Mismatch(f"{name} is not among the ops that the NPU has a form for")
    if len(node.outputs) != 1 and not OPS[node.op_type].many_outputs:
        raise Mismatch(f"{node.op_type} has {len(node.outputs)} outputs; expected one")
    if OPS[node.op_type].trait in (Trait.MOVEMENT, Trait.INDEX) and _holds_integers(node.inputs[0]):
        return _bare_movement(view, node)
    group = _Group(nodes=[node])
    for index, value in enumerate(node.inputs):
        group.inputs.append(_operand(view, group, value, f"input {index}"))
    if OPS[node.op_type].trait is Trait.INDEX:
        output = view.tensor(node.outputs[0])
        assert output is not None
        return _made(node, node.op_type, group, [output], attributes_of(node))
    if OPS[node.op_type].many_outputs:
        return _many_outputs(view, node, group)
    if OPS[node.op_type].activation:
        group.clamp = activation_bounds(view, node)
    return _finish(view, node, group, _follow(view, node, group))


def _holds_integers(value: ir.Value | None) -> bool:
    return value is not None and value.dtype is not None and value.dtype.is_integer()


def _requantization(view: GraphView, node: ir.Node) -> Match:
    """DQ -> Q: from one scale to another, a Clip without bounds."""
    source = node.inputs[0]
    if source is None or not is_dequantize(source.producer()):
        raise Mismatch("it quantizes a float value")
    group = _Group(nodes=[], clamp=Clamp())
    group.inputs.append(_operand(view, group, source, "input 0"))
    return _finish(view, node, group, node, op_type="Clip")


def _bare_movement(view: GraphView, node: ir.Node) -> Match:
    group = _Group(nodes=[node])
    data = OPS[node.op_type].data_positions(len(node.inputs))
    for index, value in enumerate(node.inputs):
        moved = index in data and value is not None and view.constant(value) is None
        group.inputs.append(_moved(view, node, value) if moved else _operand(view, group, value, f"input {index}"))
    outputs = [_moved(view, node, value) for value in node.outputs]
    return _made(node, node.op_type, group, outputs, attributes_of(node))


def _moved(view: GraphView, node: ir.Node, value: ir.Value | None) -> Tensor:
    tensor = view.tensor(value) if value is not None else None
    if tensor is None:
        raise Mismatch(f"{node.op_type} moves {node.outputs[0].dtype}, for which the NPU has no form")
    return tensor


def _many_outputs(view: GraphView, node: ir.Node, group: _Group) -> Match:
    """An op whose every output has a Q of its own."""
    outputs = []
    for value in node.outputs:
        quantizer = _only_reader(view, value)
        if not is_quantize(quantizer):
            raise Mismatch(_goes_elsewhere(value, quantizer))
        outputs.append(_quantized(view, quantizer))
        group.nodes.append(quantizer)
    return _made(node, node.op_type, group, outputs, attributes_of(node))


def _operand(view: GraphView, group: _Group, value: ir.Value | None, place: str) -> Tensor | None:
    """An input as a tensor of integers with its parameters, or as a constant as it is."""
    if value is None:
        return None
    producer = value.producer()
    if producer is not None and is_dequantize(producer):
        return _dequantized(view, group, producer)
    values = view.constant(value)
    tensor = view.tensor(value)
    if values is None:
        raise Mismatch(f"{place} {value.name!r} is float: no DequantizeLinear makes it")
    if tensor is None:
        raise Mismatch(f"{place} {value.name!r} is a constant of type {value.dtype}, for which units have no form")
    group.constants[tensor.name] = values
    return tensor


def _dequantized(view: GraphView, group: _Group, dequantizer: ir.Node) -> Tensor:
    params = view.params(dequantizer)
    if isinstance(params, str):
        raise Mismatch(params)
    source = dequantizer.inputs[0]
    assert source is not None
    tensor = view.tensor(source, params)
    assert tensor is not None
    group.dequantizers.append(dequantizer)
    values = view.constant(source)
    if values is not None:
        group.constants[tensor.name] = values
    return tensor


def _follow(view: GraphView, head: ir.Node, group: _Group) -> ir.Node:
    """Takes in what follows the op up to its Q, which it returns."""
    node = head
    while not is_quantize(node):
        value = node.outputs[0]
        following = _only_reader(view, value)
        if not is_quantize(following) and not _takes(view, head, group, following, value):
            raise Mismatch(_goes_elsewhere(value, following))
        node = following
    return node


def _goes_elsewhere(value: ir.Value, reader: ir.Node) -> str:
    return f"its float output {value.name!r} goes to {reader.op_type} {reader.name!r}; expected QuantizeLinear"


def _takes(view: GraphView, head: ir.Node, group: _Group, node: ir.Node, value: ir.Value) -> bool:
    """Whether the unit takes in the node, as its bias or its activation."""
    if head.op_type == "MatMul" and node.op_type == "Add" and node.domain == "" and len(group.nodes) == 1:
        return _take_bias(view, head, group, node, value)
    spec = OPS.get(node.op_type)
    if spec is None or not spec.activation or node.domain != "" or node.inputs[0] is not value:
        return False
    bounds = activation_bounds(view, node)
    if bounds is None:
        return False
    group.clamp = bounds if group.clamp is None else _composed(group.clamp, bounds)
    group.nodes.append(node)
    return True


def _only_reader(view: GraphView, value: ir.Value) -> ir.Node:
    readers = view.readers(value)
    if value.name in view.outputs:
        raise Mismatch(f"its float output {value.name!r} is an output of the model; expected QuantizeLinear after it")
    if len(readers) != 1:
        found = ", ".join(f"{reader.op_type} {reader.name!r}" for reader in readers[:3]) or "nothing"
        raise Mismatch(f"its float output {value.name!r} is read by {found}; expected one QuantizeLinear")
    return readers[0]


def _take_bias(view: GraphView, head: ir.Node, group: _Group, add: ir.Node, value: ir.Value) -> bool:
    """Takes an Add of a constant vector along the last axis as input 2 of a MatMul."""
    addend = add.inputs[1 if add.inputs[0] is value else 0]
    trial = _Group()
    try:
        tensor = _operand(view, trial, addend, "the bias")
    except Mismatch:
        return False
    channels = view.shape(value)[-1]
    if tensor is None or tensor.name not in trial.constants or tensor.size != channels:
        return False
    if tensor.shape[-1] != channels or view.shape(add.outputs[0]) != view.shape(value):
        return False
    vector = _as_vector(tensor)
    group.constants[vector.name] = trial.constants[tensor.name].reshape(vector.shape)
    group.inputs += [None] * (2 - len(group.inputs)) + [vector]
    group.dequantizers += trial.dequantizers
    group.nodes.append(add)
    return True


def _as_vector(tensor: Tensor) -> Tensor:
    """A tensor of shape [1, ..., n] as [n], under a name of its own where that is another shape."""
    params = tensor.params
    if len(tensor.shape) == 1:
        return tensor
    if params is not None and params.axis is not None:
        params = QuantParams(params.dtype, params.scale, params.zero_point, 0)
    return Tensor(f"{tensor.name}_vector", (tensor.size,), tensor.dtype, params)


def activation_bounds(view: GraphView, node: ir.Node) -> Clamp | None:
    """The real bounds of a Relu or Clip, None where they are computed."""
    if node.op_type == "Relu":
        return Clamp(0.0)
    bounds = [-math.inf, math.inf]
    for index in (1, 2):
        value = node.inputs[index] if index < len(node.inputs) else None
        if value is not None:
            number = view.real_constant(value)
            if number is None or number.size != 1:
                return None
            bounds[index - 1] = float(number.reshape(()))
    return Clamp(*bounds)


def _composed(first: Clamp, second: Clamp) -> Clamp:
    """``second`` after ``first`` as one: the bounds of ``first`` limited to those of ``second``."""
    low, high = np.minimum(np.maximum([first.low, first.high], second.low), second.high)
    return Clamp(float(low), float(high))


def _finish(
    view: GraphView,
    head: ir.Node,
    group: _Group,
    quantizer: ir.Node,
    op_type: str | None = None,
    attributes: Attributes | None = None,
) -> Match:
    output = _quantized(view, quantizer)
    group.nodes.append(quantizer)
    given = attributes_of(head) if op_type is None else attributes or {}
    return _made(head, op_type or head.op_type, group, [output], given)


def _quantized(view: GraphView, quantizer: ir.Node) -> Tensor:
    """The integers that a Q makes, as a unit's output."""
    params = view.params(quantizer)
    if isinstance(params, str):
        raise Mismatch(params)
    if qtype_is_wide(params):
        raise Mismatch(f"its QuantizeLinear gives {params.dtype.label}; expected an activation type")
    output = view.tensor(quantizer.outputs[0], params)
    assert output is not None
    return output


def qtype_is_wide(params: QuantParams) -> bool:
    """Whether the integers are none of an activation."""
    return params.dtype in (QType.S32, QType.S64)


def _made(head: ir.Node, op_type: str, group: _Group, outputs: Sequence[Tensor], attributes: Attributes) -> Match:
    sources = dict.fromkeys(str(node.name) for node in (*group.dequantizers, *group.nodes))
    unit = QuantUnit(
        name=str(head.name),
        op_type=op_type,
        inputs=tuple(group.inputs),
        outputs=tuple(outputs),
        attributes=attributes,
        constants=group.constants,
        clamp=group.clamp,
        source_nodes=tuple(sources),
    )
    if not unit.variable_inputs():
        raise Mismatch("its data are constant, so that there is nothing for the NPU to do at run time")
    return Match(unit, tuple(group.nodes), tuple(dict.fromkeys(group.dequantizers)))


def input_names(found: Match) -> tuple[str, ...]:
    """Names of the computed integer values that the unit reads."""
    return tuple(tensor.name for tensor in found.unit.variable_inputs())
