"""Questions about ONNX nodes that selecting, planning and inserting share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from hexqdq.ops import QUANT_ROWS
from hexqdq.ops.traits import QuantRow, Trait

QDQ_OPS = ("QuantizeLinear", "DequantizeLinear")


def spec_of(node: ir.Node) -> QuantRow | None:
    """The op's row, None where nothing says how to quantize it."""
    return QUANT_ROWS.get((node.domain, node.op_type))


def results(node: ir.Node) -> list[ir.Value]:
    """The outputs that something reads: those that hold floats or, where none do, all of them; at least one."""
    read = [value for value in node.outputs if value.name and (value.uses() or value.is_graph_output())]
    return [value for value in read if is_float(value)] or read or [node.outputs[0]]


def is_float(value: ir.Value | None) -> bool:
    """Whether a value holds float32, the type that is quantized."""
    return value is not None and value.dtype == ir.DataType.FLOAT


def constant(value: ir.Value | None) -> NDArray[Any] | None:
    """The values of an initializer, else None."""
    if value is None or not value.is_initializer() or value.const_value is None:
        return None
    return np.asarray(value.const_value.numpy())


def input_at(node: ir.Node, index: int) -> ir.Value | None:
    """Input ``index``, None where it is absent."""
    return node.inputs[index] if index < len(node.inputs) else None


def only_consumer(value: ir.Value) -> ir.Node | None:
    """The node that alone reads the value, None where there are none, several, one of an inner graph, or an output."""
    uses = value.uses()
    if len(uses) != 1 or value.is_graph_output():
        return None
    (use,) = uses
    return use.node if use.node.graph is value.graph else None


def weight_axis(node: ir.Node) -> int | None:
    """The output-channel axis of a contraction's constant weights, None for one scale."""
    weight = constant(input_at(node, 1))
    spec = spec_of(node)
    if weight is None or spec is None or spec.weight_axis is None:
        return None
    if node.op_type == "Gemm":
        return 0 if "transB" in node.attributes and node.attributes["transB"].as_int() == 1 else 1
    if node.op_type == "MatMul":
        return 1 if weight.ndim == 2 else None
    grouped = "group" in node.attributes and node.attributes["group"].as_int() != 1
    return None if node.op_type == "ConvTranspose" and grouped else spec.weight_axis


def bias_vector(values: NDArray[Any], channels: int) -> NDArray[Any] | None:
    """A constant addend as one value per output channel [channels], None where it is not that."""
    if values.size == 1:
        return np.full(channels, values.reshape(()), values.dtype)
    if values.size == channels and values.shape[-1] == channels:
        return values.reshape(channels)
    return None


def output_channels(node: ir.Node) -> int:
    """Number of output channels of a contraction."""
    shape = node.outputs[0].shape
    assert shape is not None
    return int(shape.numpy()[1 if node.op_type in ("Conv", "ConvTranspose") else -1])


def bias_add(node: ir.Node) -> tuple[ir.Node, int] | None:
    """The Add of a constant vector after a MatMul with constant weights, and the vector's input index."""
    if node.op_type != "MatMul" or weight_axis(node) is None:
        return None
    add = only_consumer(node.outputs[0])
    if add is None or add.op_type != "Add" or add.domain != "":
        return None
    index = 1 if add.inputs[0] is node.outputs[0] else 0
    values = constant(add.inputs[index])
    if values is None or add.outputs[0].shape != node.outputs[0].shape:
        return None
    return (add, index) if bias_vector(values, output_channels(node)) is not None else None


def is_movement(node: ir.Node) -> bool:
    spec = spec_of(node)
    return spec is not None and spec.trait is Trait.MOVEMENT


def gives_indices(node: ir.Node) -> bool:
    """Whether the op's result is integers that no Q follows."""
    spec = spec_of(node)
    return spec is not None and spec.trait is Trait.INDEX


def inner_nodes(node: ir.Node) -> Iterator[ir.Node]:
    """The nodes of the graphs that a node holds, as If, Loop and Scan do, and of those inside them."""
    for attribute in node.attributes.values():
        if attribute.type is ir.AttributeType.GRAPH:
            yield from ir.traversal.RecursiveGraphIterator(attribute.as_graph())
        elif attribute.type is ir.AttributeType.GRAPHS:
            for graph in attribute.as_graphs():
                yield from ir.traversal.RecursiveGraphIterator(graph)
