"""The weights on both sides of a seam: read per channel, and scaled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from hexqdq.quantize.planning.graph import constant, input_at
from hexqdq.quantize.repair.seams.find import NORMS, Reader, Seam
from hexqdq.quantize.scaled import mark_scaled

Floats = NDArray[np.float64]
Array = NDArray[Any]


def made_weights(seam: Seam) -> Floats:
    """The maker's weights as [channels, values that make one channel]."""
    weights = _constant(seam.maker, 1)
    axis = _made_weight_axis(seam.maker)
    return np.moveaxis(weights, axis, 0).reshape(seam.channels, -1)


def largest_gain(seam: Seam, factors: Floats) -> float:
    """The largest gain over ``factors`` of a normalization, which has one scale for all; 0 of other makers."""
    return float(np.abs(_constant(seam.maker, 1) / factors).max()) if seam.maker.op_type in NORMS else 0.0


@dataclass(frozen=True, eq=False)
class Read:
    """A reader's weights by output and channel it reads: the largest, the summed squares, how many are not 0.

    Each [outputs, channels]; 0 where a group does not read a channel.
    """

    largest: Floats
    squares: Floats
    counts: Floats


def read_weights(reader: Reader, channels: int) -> Read:
    weights = np.abs(_by_output(reader))
    inner = weights.shape[1]
    parts = (weights.max(axis=2), (weights**2).sum(axis=2), (weights > 0).sum(axis=2).astype(np.float64))
    groups = channels // inner
    if groups == 1:
        return Read(*parts)
    largest, squares, counts = (np.zeros((weights.shape[0], channels)) for _ in parts)
    each = weights.shape[0] // groups
    for group in range(groups):
        rows, columns = slice(group * each, (group + 1) * each), slice(group * inner, (group + 1) * inner)
        for whole, part in zip((largest, squares, counts), parts, strict=True):
            whole[rows, columns] = part[rows]
    return Read(largest, squares, counts)


def matrix(reader: Reader) -> Floats | None:
    """The weights of a matrix product as [channels, outputs], None for a convolution."""
    if reader.node.op_type not in ("Gemm", "MatMul"):
        return None
    weights = _constant(reader.node, 1)
    return weights.T if _transposed(reader.node) else weights


def _by_output(reader: Reader) -> Floats:
    """The weights as [outputs, channels of a group, positions]."""
    weights = _constant(reader.node, 1)
    turned = matrix(reader)
    if turned is not None:
        return turned.T[:, :, None]
    if reader.node.op_type == "ConvTranspose":
        weights = np.moveaxis(weights, 0, 1)
    return weights.reshape(*weights.shape[:2], -1)


def scale(model: ir.Model, seam: Seam, factors: Floats) -> None:
    """Divides the maker's channels by ``factors`` [channels] and multiplies the readers' by them."""
    graph = model.graph
    mark_scaled(model, seam.values)
    _replace(graph, seam.maker, 1, _along(1 / factors, _constant(seam.maker, 1).ndim, _made_weight_axis(seam.maker)))
    if constant(input_at(seam.maker, 2)) is not None and seam.maker.op_type != "RMSNormalization":
        _shift(graph, seam.maker, 2, 1 / factors, -1)
    for node, index in seam.shifts:
        rank = len(node.outputs[0].shape or ())
        _shift(graph, node, index, 1 / factors, seam.axis - rank)
    for reader in seam.readers:
        _replace(graph, reader.node, 1, read_factors(reader, factors))


def _made_weight_axis(maker: ir.Node) -> int:
    if maker.op_type in NORMS:
        return 0
    if maker.op_type == "Conv":
        return 0
    if maker.op_type == "Gemm":
        return 0 if _transposed(maker) else 1
    return 1


def read_factors(reader: Reader, factors: Floats) -> Floats:
    """Numbers [channels] laid along the reader's weights, each at the channel it is for."""
    weights = _constant(reader.node, 1)
    if reader.node.op_type == "Conv":
        inner = weights.shape[1]
        groups = factors.size // inner
        per_output = factors.reshape(groups, 1, inner).repeat(weights.shape[0] // groups, axis=1)
        return per_output.reshape(weights.shape[0], inner, *(1 for _ in weights.shape[2:]))
    axis = 1 if reader.node.op_type == "Gemm" and _transposed(reader.node) else 0
    return _along(factors, weights.ndim, axis)


def _shift(graph: ir.Graph, node: ir.Node, index: int, factors: Floats, axis: int) -> None:
    """Scales an addend along ``axis``, counted from the end; one value for all becomes one per channel."""
    values = _constant(node, index)
    shape = [1] * max(values.ndim, -axis)
    shape[axis] = factors.size
    _replace(graph, node, index, factors.reshape(shape))


def _replace(graph: ir.Graph, node: ir.Node, index: int, factors: Floats) -> None:
    """Gives the node a constant of its own: what others read of the old one stays."""
    old = node.inputs[index]
    assert old is not None
    values = (_constant(node, index) * factors).astype(np.float32)
    base, number = f"{old.name}_scaled", 2
    name = base
    while name in graph.initializers:
        name, number = f"{base}_{number}", number + 1
    tensor = ir.tensor(values, name=name)
    new = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(values.shape), const_value=tensor)
    graph.register_initializer(new)
    node.replace_input_with(index, new)
    if not old.uses() and not old.is_graph_output():
        del graph.initializers[str(old.name)]


def _along(factors: Floats, rank: int, axis: int) -> Floats:
    shape = [1] * rank
    shape[axis] = factors.size
    return factors.reshape(shape)


def _constant(node: ir.Node, index: int) -> Floats:
    values = constant(input_at(node, index))
    assert values is not None
    return values.astype(np.float64)


def _transposed(node: ir.Node) -> bool:
    return "transB" in node.attributes and node.attributes["transB"].as_int() == 1
