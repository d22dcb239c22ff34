"""Node groups of a QDQ graph: an op with the DQ that it reads through and the Q that its results go to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

Array = NDArray[Any]

QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"
ABSORBED = ("Relu", "Clip")
"""Activations that belong to the group of the op before them."""
DOMAINS = ("", "com.microsoft")

NAMES = {
    ir.DataType.UINT8: "u8",
    ir.DataType.INT8: "s8",
    ir.DataType.UINT16: "u16",
    ir.DataType.INT16: "s16",
    ir.DataType.INT32: "s32",
    ir.DataType.INT4: "s4",
    ir.DataType.UINT4: "u4",
}


@dataclass(frozen=True, eq=False)
class Encoding:
    """What a Q or DQ says: ``dtype`` by its short name, one scale or several along ``axis``, or in blocks of it."""

    dtype: str
    scale: Array
    zero_point: Array
    axis: int | None = None
    block: int = 0

    @property
    def is_symmetric(self) -> bool:
        return not np.any(self.zero_point)

    def equals(self, other: Encoding) -> bool:
        """Whether both say the same."""
        same = (self.dtype, self.axis, self.block) == (other.dtype, other.axis, other.block)
        scales = np.array_equal(self.scale, other.scale)
        return same and scales and np.array_equal(self.zero_point, other.zero_point)

    def __str__(self) -> str:
        if self.scale.size > 1:
            return f"{self.dtype}, {self.scale.size} scales along axis {self.axis}"
        return f"{self.dtype}, scale {self.scale.item():.6g}, zero point {self.zero_point.item()}"


@dataclass(frozen=True, eq=False)
class Operand:
    """What a group reads or gives at one place; ``encoding`` is that of its DQ or Q, None where it has none.

    ``constant`` holds the values, as stored, of what no node computes; ``readers`` counts who reads a result.
    """

    value: ir.Value
    encoding: Encoding | None
    constant: Array | None = None
    readers: int = 1

    @property
    def is_float(self) -> bool:
        return self.value.dtype in (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.DOUBLE)

    @property
    def rank(self) -> int:
        return len(self.value.shape) if self.value.shape is not None else 0


@dataclass(frozen=True, eq=False)
class NodeGroup:
    """An op, its inputs (None where left out) and its outputs; ``activation`` is the Relu or Clip it absorbs."""

    node: ir.Node
    inputs: tuple[Operand | None, ...]
    outputs: tuple[Operand, ...]
    activation: ir.Node | None = None

    def input(self, index: int) -> Operand | None:
        return self.inputs[index] if index < len(self.inputs) else None

    def attribute(self, name: str, default: Any) -> Any:
        """A number, a text or a list of the op's attributes."""
        found = self.node.attributes.get(name)
        return default if found is None or found.value is None else found.value

    @property
    def is_about_floats(self) -> bool:
        """Whether it reads or gives floats: shapes, indices and masks are not what the rules are about."""
        return any(operand is not None and operand.is_float for operand in (*self.inputs, *self.outputs))


def is_quantize(node: ir.Node) -> bool:
    return node.op_type == QUANTIZE and node.domain in DOMAINS


def is_dequantize(node: ir.Node) -> bool:
    return node.op_type == DEQUANTIZE and node.domain in DOMAINS


def groups(graph: ir.Graph) -> Iterator[NodeGroup]:
    """Every op besides Q, DQ and absorbed activations, in the graph's order."""
    for node in graph:
        if not (is_quantize(node) or is_dequantize(node) or _is_absorbed(node)):
            activation = _activation_of(node)
            ends = node.outputs if activation is None else activation.outputs
            yield NodeGroup(node, tuple(map(_input, node.inputs)), tuple(map(_output, ends)), activation)


def encoding_of(node: ir.Node) -> Encoding | None:
    """The parameters of a Q or DQ, None where they are computed."""
    scale = stored(node.inputs[1])
    if scale is None:
        return None
    given = node.inputs[2] if len(node.inputs) > 2 else None
    zero_point = stored(given)
    integers = given if given is not None else (node.outputs[0] if is_quantize(node) else node.inputs[0])
    dtype = integers.dtype if integers is not None else None
    name = NAMES.get(dtype, str(dtype)) if dtype is not None else "unknown"
    axis = _number(node, "axis", 1) if scale.ndim and scale.size > 1 else None
    return Encoding(name, scale, _zeros(scale) if zero_point is None else zero_point, axis, _block(node, scale))


def stored(value: ir.Value | None) -> Array | None:
    """The values of an initializer, else None."""
    if value is None or value.const_value is None:
        return None
    return np.asarray(value.const_value.numpy())


def _zeros(scale: Array) -> Array:
    return np.zeros(scale.shape, np.int32)


def _block(node: ir.Node, scale: Array) -> int:
    """The block size; a scale of several axes without one has it from the shapes."""
    block = _number(node, "block_size", 0)
    shape = node.inputs[0].shape if node.inputs[0] is not None else None
    if block or scale.ndim < 2 or shape is None:
        return block
    axis = _number(node, "axis", 1)
    return int(shape.numpy()[axis]) // int(scale.shape[axis])


def _number(node: ir.Node, name: str, default: int) -> int:
    return int(node.attributes[name].value) if name in node.attributes else default


def _input(value: ir.Value | None) -> Operand | None:
    if value is None:
        return None
    producer = value.producer()
    if producer is not None and is_dequantize(producer):
        return Operand(value, encoding_of(producer), stored(producer.inputs[0]))
    return Operand(value, None, stored(value))


def _output(value: ir.Value) -> Operand:
    """A result; its encoding is that of the one Q that alone reads it."""
    uses = tuple(value.uses())
    readers = len(uses) + value.is_graph_output()
    if readers == 1 and uses and is_quantize(uses[0].node) and uses[0].idx == 0:
        return Operand(value, encoding_of(uses[0].node))
    return Operand(value, None, readers=readers)


def _activation_of(node: ir.Node) -> ir.Node | None:
    """The Relu or Clip that alone reads the op's only result and gives to a Q."""
    if len(node.outputs) != 1 or node.outputs[0].is_graph_output():
        return None
    uses = tuple(node.outputs[0].uses())
    reader = uses[0].node if len(uses) == 1 else None
    return reader if reader is not None and _is_absorbed(reader) else None


def _is_absorbed(node: ir.Node) -> bool:
    if node.op_type not in ABSORBED or node.domain != "" or node.inputs[0] is None:
        return False
    data = node.inputs[0]
    producer = data.producer()
    if producer is None or is_dequantize(producer) or producer.op_type in ABSORBED or len(producer.outputs) != 1:
        return False
    alone = len(data.uses()) == 1 and not data.is_graph_output()
    return alone and _output(node.outputs[0]).encoding is not None
