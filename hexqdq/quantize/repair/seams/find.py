"""Finds seams: tensors whose channels may be scaled, their maker and their readers.

What lies between must commute with a positive factor per channel: f(s x) = s f(x). Relu, LeakyRelu,
PRelu, pooling, averages and products do, Clip to a fixed bound does not; a constant that is added is
scaled too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import onnx_ir as ir

from hexqdq.quantize.planning.graph import constant, input_at, is_float
from hexqdq.quantize.recipe import Recipe

COMMUTING = ("Relu", "LeakyRelu", "Identity", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool")
POOLED = ("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool")
NORMS = ("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization")

Place = tuple[ir.Node, int]
"""A node and the position of a constant that is scaled with the channels."""


@dataclass(frozen=True, eq=False)
class Reader:
    """A contraction that reads the channels of ``data``, which lie along ``axis``."""

    node: ir.Node
    data: ir.Value
    axis: int


@dataclass(frozen=True, eq=False)
class Seam:
    """``maker`` writes ``channels`` along ``axis`` of its output; ``shifts`` are constants added on the way.

    ``values`` are the names of what is scaled, from the maker's output to what the readers read.
    """

    maker: ir.Node
    axis: int
    channels: int
    shifts: tuple[Place, ...]
    readers: tuple[Reader, ...]
    values: tuple[str, ...]


def seams(graph: ir.Graph, fixed: Collection[str] = ()) -> Iterator[Seam]:
    """Every seam but those of ``fixed`` values, in the order of computation."""
    for node in graph:
        axis = _made_axis(node)
        if axis is None:
            continue
        walk = _Walk()
        if walk.follow(node.outputs[0], axis) and walk.readers and walk.values.isdisjoint(fixed):
            size = _size(node.outputs[0], axis)
            yield Seam(node, axis, size, tuple(walk.shifts), tuple(walk.readers), tuple(sorted(walk.values)))


def fixed_values(recipe: Recipe) -> frozenset[str]:
    """The values whose ranges the recipe gives, in the float model's own numbers."""
    return frozenset(entry.tensor for entry in recipe.overrides if entry.tensor is not None and entry.low is not None)


class _Walk:
    """What reads a value's channels, through ops that commute with their scaling."""

    def __init__(self) -> None:
        self.shifts: list[Place] = []
        self.readers: list[Reader] = []
        self.values: set[str] = set()
        self._products: set[ir.Node] = set()

    def follow(self, value: ir.Value, axis: int) -> bool:
        """Whether everything that reads the value can take its scaled channels."""
        if value.is_graph_output() or not value.uses():
            return False
        self.values.add(str(value.name))
        return all(self._take(use.node, use.idx, value, axis) for use in value.uses())

    def _take(self, node: ir.Node, index: int, value: ir.Value, axis: int) -> bool:
        if node.domain != "" or node.graph is not value.graph:
            return False
        if index == 0 and _reads_channels(node, axis):
            self.readers.append(Reader(node, value, axis))
            return True
        if node.op_type in COMMUTING and index == 0 and (axis == 1 or node.op_type not in POOLED):
            return self.follow(node.outputs[0], axis)
        if node.op_type == "PRelu" and index == 0 and constant(input_at(node, 1)) is not None:
            return self.follow(node.outputs[0], axis)
        if node.op_type == "Mul" or (node.op_type == "Div" and index == 0):
            return self._times(node, value, axis)
        if node.op_type == "Add" and _shifts_channels(node, 1 - index, axis):
            self.shifts.append((node, 1 - index))
            return self.follow(node.outputs[0], axis)
        if node.op_type in ("Flatten", "Reshape", "Squeeze") and index == 0 and _keeps_channels(node, axis):
            return self.follow(node.outputs[0], 1)
        return False

    def _times(self, node: ir.Node, value: ir.Value, axis: int) -> bool:
        """A product takes scaled channels once; a value times itself would take them twice."""
        if node in self._products or node.outputs[0].shape != value.shape:
            return False
        self._products.add(node)
        return self.follow(node.outputs[0], axis)


def _made_axis(node: ir.Node) -> int | None:
    """The axis of the output's channels that the node's constants can scale."""
    if node.domain != "" or not is_float(node.outputs[0]) or len([v for v in node.outputs if v.uses()]) != 1:
        return None
    rank = _rank(node.outputs[0])
    if constant(input_at(node, 1)) is None:
        return None
    if node.op_type in ("Conv", "ConvTranspose", "Gemm"):
        bias = input_at(node, 2)
        grouped = node.op_type == "ConvTranspose" and _integer(node, "group", 1) != 1
        return None if grouped or (bias is not None and constant(bias) is None) else 1
    if node.op_type == "MatMul":
        return rank - 1 if _rank(input_at(node, 1)) == 2 else None
    if node.op_type in NORMS:
        bias, last = input_at(node, 2), _integer(node, "axis", -1) in (-1, rank - 1)
        return rank - 1 if last and (bias is None or constant(bias) is not None) else None
    return None


def _reads_channels(node: ir.Node, axis: int) -> bool:
    """Whether the node is a contraction whose constant weights have one slice per channel of its input."""
    weights = input_at(node, 1)
    if constant(weights) is None:
        return False
    if node.op_type == "Conv":
        return axis == 1
    if node.op_type == "ConvTranspose":
        return axis == 1 and _integer(node, "group", 1) == 1
    if node.op_type == "Gemm":
        return axis == 1 and _integer(node, "transA", 0) == 0
    return node.op_type == "MatMul" and axis == _rank(node.inputs[0]) - 1 and _rank(weights) == 2


def _shifts_channels(node: ir.Node, index: int, axis: int) -> bool:
    """Whether the addend is a constant with one value per channel, or one for all."""
    values = constant(input_at(node, index))
    result = node.outputs[0]
    if values is None or _rank(result) < values.ndim or result.shape != node.inputs[1 - index].shape:  # type: ignore[union-attr]
        return False
    place = axis - (_rank(result) - values.ndim)
    return all(size == 1 or position == place for position, size in enumerate(values.shape))


def _keeps_channels(node: ir.Node, axis: int) -> bool:
    """Whether [N, C, 1, 1] becomes [N, C]."""
    data, result = node.inputs[0], node.outputs[0]
    if data is None or data.shape is None or result.shape is None:
        return False
    before, after = data.shape.numpy(), result.shape.numpy()
    return axis == 1 and len(after) == 2 and before[:2] == after and all(size == 1 for size in before[2:])


def _integer(node: ir.Node, name: str, default: int) -> int:
    return node.attributes[name].as_int() if name in node.attributes else default


def _rank(value: ir.Value | None) -> int:
    return len(value.shape) if value is not None and value.shape is not None else -1


def _size(value: ir.Value, axis: int) -> int:
    assert value.shape is not None
    return int(value.shape.numpy()[axis])
