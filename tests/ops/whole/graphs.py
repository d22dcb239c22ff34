"""Small graphs of several units: the shapes of networks, and the corners of layouts."""

from __future__ import annotations

import math

from hexqdq.ops.unit import Clamp, QuantUnit, Tensor, UnitGraph
from hexqdq.qtypes import QType
from tests.ops.cases import (
    RELU,
    RELU6,
    S8,
    U8,
    Case,
    Edge,
    Geometry,
    Style,
    add_unit,
    contraction_unit,
    conv_unit,
    covering,
    graph_of,
    unary_unit,
)

SAME = (1, 1, 1, 1)
NHWC, NCHW = (0, 2, 3, 1), (0, 3, 1, 2)


def conv(source: Tensor, name: str, geometry: Geometry, clamp: Clamp | None = RELU, seed: int = 0) -> QuantUnit:
    """A Conv of a tensor."""
    return conv_unit(geometry, Style(edge_of(source), clamp=clamp, seed=seed), (source.name, name))


def edge_of(tensor: Tensor) -> Edge:
    """The type and parameters of a tensor."""
    assert tensor.params is not None
    return Edge(tensor.dtype, tensor.params.scale[0], tensor.params.zero_point[0])


def add(left: Tensor, right: Tensor, name: str, clamp: Clamp | None = None) -> QuantUnit:
    """An Add whose output covers both operands."""
    edges = (edge_of(left), edge_of(right))
    low = sum(edge.scale * (edge.dtype.low - edge.zero_point) for edge in edges)
    high = sum(edge.scale * (edge.dtype.high - edge.zero_point) for edge in edges)
    return add_unit(left, right, covering(low, high, left.dtype), clamp, name)


def transpose(source: Tensor, name: str, perm: tuple[int, ...]) -> QuantUnit:
    shape = tuple(source.shape[index] for index in perm)
    return unary_unit("Transpose", source, edge_of(source).tensor(name, shape), {"perm": perm})


def flatten(source: Tensor, name: str, axis: int = 1) -> QuantUnit:
    shape = (math.prod(source.shape[:axis]), math.prod(source.shape[axis:]))
    return unary_unit("Flatten", source, edge_of(source).tensor(name, shape), {"axis": axis})


def mean(source: Tensor, name: str) -> QuantUnit:
    result = edge_of(source).tensor(name, (*source.shape[:2], 1, 1))
    return unary_unit("GlobalAveragePool", source, result)


def dense(source: Tensor, name: str, columns: int) -> QuantUnit:
    """A Gemm with bias."""
    style = Style(edge_of(source))
    depth = source.shape[-1]
    weight = (style.weights((columns, depth)), style.weight_params(columns, 0))
    tensors = (source, style.output(depth).tensor(name, (source.shape[0], columns)))
    return contraction_unit("Gemm", tensors, weight, style, {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 1})


def softmax(source: Tensor, name: str) -> QuantUnit:
    edge = Edge(source.dtype, 1 / 256, source.dtype.low)
    return unary_unit("Softmax", source, edge.tensor(name, source.shape), {"axis": -1})


def classifier(edge: Edge, name: str = "classifier") -> UnitGraph:
    """A residual block, a depthwise block, mean, Gemm and Softmax."""
    x = edge.tensor("x", (1, 3, 8, 8))
    stem = conv(x, "stem", Geometry(3, 8, (8, 8), pads=SAME))
    body = conv(stem.output, "body", Geometry(8, 8, (8, 8), pads=SAME), None, 1)
    block = add(stem.output, body.output, "block", RELU)
    deep = conv(block.output, "deep", Geometry(8, 8, (8, 8), pads=SAME, strides=(2, 2), group=8), RELU6, 2)
    wide = conv(deep.output, "wide", Geometry(8, 16, (4, 4), (1, 1)), RELU6, 3)
    pooled = mean(wide.output, "pooled")
    flat = flatten(pooled.output, "flat")
    logits = dense(flat.output, "logits", 10)
    return graph_of(stem, body, block, deep, wide, pooled, flat, logits, softmax(logits.output, "y"), name=name)


def channels_last_border() -> UnitGraph:
    """A graph whose border is NHWC, as converted from frameworks that think so."""
    x = S8.tensor("x", (1, 6, 7, 4))
    inside = transpose(x, "inside", NCHW)
    first = conv(inside.output, "first", Geometry(4, 8, (6, 7), pads=SAME))
    second = conv(first.output, "second", Geometry(8, 5, (6, 7), (1, 1)))
    return graph_of(inside, first, second, transpose(second.output, "y", NHWC), name="channels_last")


def transposes_cancel() -> UnitGraph:
    """NHWC and back between two convolutions."""
    x = U8.tensor("x", (1, 4, 5, 5))
    first = conv(x, "first", Geometry(4, 6, (5, 5), pads=SAME))
    there = transpose(first.output, "there", NHWC)
    back = transpose(there.output, "back", NCHW)
    second = conv(back.output, "y", Geometry(6, 3, (5, 5), pads=SAME))
    return graph_of(first, there, back, second, name="cancel")


def swapped_sides() -> UnitGraph:
    """A Transpose of height and width that no convolution can absorb."""
    x = U8.tensor("x", (1, 4, 5, 3))
    first = conv(x, "first", Geometry(4, 6, (5, 3), (1, 1)))
    turned = transpose(first.output, "turned", (0, 1, 3, 2))
    second = conv(turned.output, "y", Geometry(6, 4, (3, 5), pads=SAME))
    return graph_of(first, turned, second, name="swapped")


def two_outputs() -> UnitGraph:
    """A value that is an output and goes on, in two orders."""
    x = U8.tensor("x", (1, 4, 5, 5))
    first = conv(x, "first", Geometry(4, 6, (5, 5), pads=SAME))
    second = conv(first.output, "second", Geometry(6, 4, (5, 5), (1, 1)))
    last = transpose(first.output, "last", NHWC)
    inner = graph_of(first, second, last)
    return UnitGraph("two_outputs", inner.inputs, (first.output, second.output, last.output), inner.units)


def passes_through() -> UnitGraph:
    """Outputs that are the input itself, twice."""
    x = U8.tensor("x", (1, 1, 6))
    first = transpose(x, "first", (1, 0, 2))
    second = transpose(x, "second", (0, 1, 2))
    return graph_of(first, second, name="through")


def shared_constants() -> UnitGraph:
    """One weight and one operand under two convolutions with different inputs."""
    x = U8.tensor("x", (1, 4, 4, 4))
    geometry = Geometry(4, 4, (4, 4), pads=SAME)
    first = conv(x, "first", geometry)
    second = conv(first.output, "second", geometry)
    weight = first.input(1)
    constants = {**second.constants, weight.name: first.constant(1)}
    del constants[second.input(1).name]
    inputs = (second.input(0), weight, second.input(2))
    again = QuantUnit("again", "Conv", inputs, second.outputs, second.attributes, constants, second.clamp)
    return graph_of(first, again, add(first.output, second.output, "y"), name="shared")


def broadcast_inside() -> UnitGraph:
    """A gate of one value a channel added to a map."""
    x = U8.tensor("x", (1, 8, 4, 6))
    body = conv(x, "body", Geometry(8, 8, (4, 6), pads=SAME))
    gate = mean(body.output, "gate")
    return graph_of(body, gate, add(body.output, gate.output, "y"), name="broadcast")


GRAPHS = (
    classifier(U8),
    channels_last_border(),
    transposes_cancel(),
    swapped_sides(),
    two_outputs(),
    passes_through(),
    shared_constants(),
    broadcast_inside(),
    classifier(Edge(QType.S8, 0.03, -7), "classifier_s8"),
)
CASES = tuple(Case(graph.name, graph) for graph in GRAPHS)
