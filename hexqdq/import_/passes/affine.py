"""Folds what scales and shifts channels into the contraction before it: BatchNormalization, constant Mul and Add."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_CONTRACTIONS = ("Conv", "ConvTranspose", "Gemm")


@dataclass(frozen=True, eq=False)
class Affine:
    """``data * factor + shift`` per channel (axis 1), float64 [channels]."""

    data: ir.Value
    factor: Floats
    shift: Floats


def fold_affine(model: ir.Model) -> int:
    """Folds into Conv, ConvTranspose and Gemm; a BatchNormalization elsewhere becomes a depthwise 1x1 Conv."""
    changes = 0
    for node in list(model.graph):
        affine = _affine(node)
        if affine is None:
            continue
        producer = affine.data.producer()
        if producer is not None and _takes(producer, affine):
            _fold(model.graph, producer, node, affine)
            changes += 1
        elif node.op_type == "BatchNormalization":
            _write_alone(model.graph, node, affine)
            changes += 1
    return changes


def constant(value: ir.Value | None) -> NDArray[Any] | None:
    """The float32 values of an initializer, else None."""
    if value is None or not value.is_initializer() or value.const_value is None:
        return None
    values = value.const_value.numpy()
    return values if values.dtype == np.float32 else None


def _affine(node: ir.Node) -> Affine | None:
    """The node as scale and shift, None where it is something else."""
    if node.domain != "":
        return None
    if node.op_type == "BatchNormalization":
        return _batch_norm(node)
    if node.op_type in ("Add", "Mul"):
        for data, other in (node.inputs, node.inputs[::-1]):
            values = per_channel(data, constant(other), node.outputs[0])
            if data is not None and values is not None:
                one, none = np.ones_like(values), np.zeros_like(values)
                return Affine(data, one, values) if node.op_type == "Add" else Affine(data, values, none)
    return None


def _batch_norm(node: ir.Node) -> Affine | None:
    data = node.inputs[0]
    held = [constant(value) for value in node.inputs[1:5]]
    trains = "training_mode" in node.attributes and node.attributes["training_mode"].as_int()
    if data is None or trains or any(output.uses() for output in node.outputs[1:]):
        return None
    scale, bias, mean, variance = (None if values is None else values.astype(np.float64) for values in held)
    if scale is None or bias is None or mean is None or variance is None:
        return None
    epsilon = node.attributes["epsilon"].as_float() if "epsilon" in node.attributes else 1e-5
    factor = scale / np.sqrt(variance + epsilon)
    return Affine(data, factor, bias - mean * factor)


def per_channel(data: ir.Value | None, values: NDArray[Any] | None, result: ir.Value) -> Floats | None:
    """A constant operand as one value per channel (axis 1) of the data, None where it is not that."""
    if data is None or values is None or data.shape is None or data.shape != result.shape or len(data.shape) < 2:
        return None
    rank, channels = len(data.shape), int(data.shape.numpy()[1])
    shape = (1,) * (rank - values.ndim) + values.shape
    if len(shape) != rank or shape not in ((1,) * rank, (1, channels, *(1,) * (rank - 2))):
        return None
    return np.broadcast_to(values.astype(np.float64).reshape(-1), (channels,)).copy()


def _takes(producer: ir.Node, affine: Affine) -> bool:
    """Whether a contraction of constant weights alone feeds the data."""
    if producer.domain != "" or producer.op_type not in _CONTRACTIONS:
        return False
    bias = producer.inputs[2] if len(producer.inputs) > 2 else None
    scales_bias = "beta" not in producer.attributes or producer.attributes["beta"].as_float() == 1.0
    alone = len(affine.data.uses()) == 1 and not affine.data.is_graph_output()
    return alone and scales_bias and constant(producer.inputs[1]) is not None and _is_channels(bias, affine)


def _is_channels(bias: ir.Value | None, affine: Affine) -> bool:
    values = constant(bias)
    return bias is None or (values is not None and values.size in (1, affine.shift.size))


def _fold(graph: ir.Graph, producer: ir.Node, node: ir.Node, affine: Affine) -> None:
    """New weights and bias for the contraction, which takes over the node's output."""
    weights = constant(producer.inputs[1])
    assert weights is not None
    bias = constant(producer.inputs[2]) if len(producer.inputs) > 2 else None
    start = np.zeros_like(affine.shift) if bias is None else bias.astype(np.float64).reshape(-1)
    shift = start * affine.factor + affine.shift
    folded = _scaled(producer, weights.astype(np.float64), affine.factor)
    producer.resize_inputs(3)
    producer.replace_input_with(1, add_initializer(graph, f"{producer.name}_folded_weight", folded))
    producer.replace_input_with(2, add_initializer(graph, f"{producer.name}_folded_bias", shift))
    _take_over(graph, node, producer.outputs[0])


def _scaled(producer: ir.Node, weights: Floats, factor: Floats) -> Floats:
    """The weights times the factor of their output channel."""
    if producer.op_type == "Gemm":
        by_rows = "transB" in producer.attributes and producer.attributes["transB"].as_int()
        return weights * (factor[:, None] if by_rows else factor)
    if producer.op_type == "Conv":
        return weights * factor.reshape(-1, *(1,) * (weights.ndim - 1))
    group = producer.attributes["group"].as_int() if "group" in producer.attributes else 1
    rows, columns, *kernel = weights.shape
    grouped = weights.reshape(group, rows // group, columns, math.prod(kernel))
    return (grouped * factor.reshape(group, 1, columns, 1)).reshape(weights.shape)


def _take_over(graph: ir.Graph, node: ir.Node, result: ir.Value) -> None:
    """``result`` in place of the node's output, under its name."""
    output = node.outputs[0]
    name = output.name
    output.name = f"{name}_before_folding"
    ir.convenience.replace_all_uses_with(output, result, replace_graph_outputs=True)
    graph.remove(node, safe=True)
    result.name = name


def _write_alone(graph: ir.Graph, node: ir.Node, affine: Affine) -> None:
    """A depthwise 1x1 Conv; on rows of features a Mul and an Add."""
    output, shape = node.outputs[0], affine.data.shape
    assert shape is not None
    shift = add_initializer(graph, f"{node.name}_shift", affine.shift)
    if len(shape) > 2:
        kernel = affine.factor.reshape(-1, *(1,) * (len(shape) - 1))
        weight = add_initializer(graph, f"{node.name}_factor", kernel)
        made = [ir.node("Conv", [affine.data, weight, shift], {"group": len(kernel)}, name=str(node.name))]
    else:
        factor = add_initializer(graph, f"{node.name}_factor", affine.factor)
        made = [ir.node("Mul", [affine.data, factor], name=f"{node.name}_scaled")]
        made.append(ir.node("Add", [made[0].outputs[0], shift], name=str(node.name)))
        made[0].outputs[0].name = f"{output.name}_scaled"
    for one in made:
        one.outputs[0].type, one.outputs[0].shape = output.type, shape
    graph.insert_before(node, made)
    _take_over(graph, node, made[-1].outputs[0])


def add_initializer(graph: ir.Graph, base: str, values: Floats) -> ir.Value:
    name, number = base, 2
    while name in graph.initializers:
        name, number = f"{base}_{number}", number + 1
    tensor = ir.tensor(values.astype(np.float32), name=name)
    value = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(values.shape), const_value=tensor)
    graph.register_initializer(value)
    return value
