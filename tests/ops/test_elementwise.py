"""Sums, products, slopes, Relu and Clip on the ladder."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexqdq.ops.unit import Clamp, QuantUnit
from hexqdq.qtypes import QType
from tests.ops.cases import (
    RELU,
    RELU6,
    S8,
    S8_HIGH,
    S8_LOW,
    U8,
    U8_HIGH,
    U8_LOW,
    Case,
    Edge,
    add_unit,
    covering,
    graph_of,
    unary_unit,
)
from tests.ops.ladder import FEW, accepted, climb, climb_compiled, sampled

Shape = tuple[int, ...]


def _sum_edge(left: Edge, right: Edge) -> Edge:
    low = sum(edge.scale * (edge.dtype.low - edge.zero_point) for edge in (left, right))
    high = sum(edge.scale * (edge.dtype.high - edge.zero_point) for edge in (left, right))
    return covering(0.7 * low, 0.7 * high, left.dtype)


def _add(
    name: str,
    edges: tuple[Edge, Edge],
    shapes: tuple[Shape, Shape],
    result: Edge | None = None,
    clamp: Clamp | None = None,
) -> Case:
    tensors = [edge.tensor(key, shape) for key, edge, shape in zip("ab", edges, shapes, strict=True)]
    return Case(name, graph_of(add_unit(tensors[0], tensors[1], result or _sum_edge(*edges), clamp)))


def _with_constant(name: str, index: int, shape: Shape, other: Shape = (1, 8, 3, 5)) -> Case:
    """One operand constant."""
    case = _add(name, (U8, U8_LOW), (other, shape) if index else (shape, other))
    unit = case.graph.units[0]
    tensor = unit.input(index)
    values = np.random.default_rng(1).integers(0, 256, shape).astype(np.uint8)
    constant = QuantUnit(unit.name, "Add", unit.inputs, unit.outputs, {}, {tensor.name: values})
    return Case(name, graph_of(constant))


def _twice() -> Case:
    x = U8.tensor("x", (1, 4, 3, 3))
    return Case("with_itself", graph_of(add_unit(x, x, _sum_edge(U8, U8))))


def _clip(name: str, edges: tuple[Edge, Edge], clamp: Clamp = RELU6, shape: Shape = (1, 8, 5, 5)) -> Case:
    op_type = "Relu" if clamp == RELU else "Clip"
    return Case(
        name, graph_of(unary_unit(op_type, edges[0].tensor("x", shape), edges[1].tensor("y", shape), clamp=clamp))
    )


def _difference(name: str, edges: tuple[Edge, Edge], shapes: tuple[Shape, Shape], clamp: Clamp | None = None) -> Case:
    low = edges[0].params.scale[0] * (edges[0].dtype.low - edges[0].zero_point)
    high = edges[1].params.scale[0] * (edges[1].dtype.high - edges[1].zero_point)
    return _binary(name, "Sub", edges, shapes, covering(low - 0.5 * high, high + 0.5, edges[0].dtype), clamp)


def _product(name: str, edges: tuple[Edge, Edge], shapes: tuple[Shape, Shape], clamp: Clamp | None = None) -> Case:
    reach = [edge.scale * max(edge.dtype.high - edge.zero_point, edge.zero_point - edge.dtype.low) for edge in edges]
    result = covering(-0.6 * reach[0] * reach[1], 0.7 * reach[0] * reach[1], edges[0].dtype)
    return _binary(name, "Mul", edges, shapes, result, clamp)


def _binary(
    name: str,
    op_type: str,
    edges: tuple[Edge, Edge],
    shapes: tuple[Shape, Shape],
    result: Edge,
    clamp: Clamp | None = None,
) -> Case:
    a, b = (edge.tensor(key, shape) for key, edge, shape in zip("ab", edges, shapes, strict=True))
    shape = np.broadcast_shapes(*shapes)
    return Case(name, graph_of(QuantUnit("y_unit", op_type, (a, b), (result.tensor("y", shape),), {}, {}, clamp)))


def _constant(case: Case, index: int) -> Case:
    """The case with one operand constant."""
    (unit,) = case.graph.units
    tensor = unit.input(index)
    values = np.random.default_rng(1).integers(tensor.dtype.low, tensor.dtype.high + 1, tensor.shape)
    constants = {tensor.name: values.astype(tensor.dtype.numpy)}
    return Case(case.name, graph_of(replace(unit, constants=constants)))


def _slopes(name: str, edges: tuple[Edge, Edge], shapes: tuple[Shape, Shape], clamp: Clamp | None = None) -> Case:
    return _binary(name, "PRelu", edges, shapes, Edge(edges[0].dtype, edges[0].scale * 0.8, edges[0].zero_point), clamp)


SLOPE = Edge(QType.U8, 0.004, 100)
U8_FINE = Edge(QType.U8, 0.03, 121)
SQUARE = ((1, 8, 4, 5), (1, 8, 4, 5))
CASES = (
    _add("equal_scales", (U8, U8), SQUARE),
    _add("scales_differ", (U8, U8_LOW), SQUARE),
    _add("scales_far_apart", (U8, Edge(QType.U8, 0.0001, 3)), SQUARE),
    _add("relu", (U8, U8_LOW), SQUARE, clamp=RELU),
    _add("relu6", (S8, S8_LOW), SQUARE, clamp=RELU6),
    _add("s8_ends", (S8_LOW, S8_HIGH), SQUARE),
    _add("u8_ends", (U8_LOW, U8_HIGH), SQUARE),
    _add("output_saturates", (U8, U8), SQUARE, result=U8_LOW),
    _add("rank_1", (U8, U8_FINE), ((7,), (7,))),
    _add("rank_0", (U8, U8_LOW), ((), ())),
    _add("rank_2_and_3", (U8, U8_LOW), ((3, 7), (2, 3, 7))),
    _add("broadcast_channel", (U8, U8_LOW), ((1, 8, 4, 5), (8, 1, 1))),
    _add("broadcast_both", (U8, U8_LOW), ((2, 1, 4, 1), (1, 8, 1, 5))),
    _add("broadcast_scalar", (U8, U8_FINE), ((1, 8, 4, 5), ())),
    _with_constant("constant_right", 1, (8, 1, 1)),
    _with_constant("constant_left", 0, (1, 8, 3, 5)),
    _with_constant("constant_scalar", 1, ()),
    _with_constant("constant_rank_0", 1, (), ()),
    _with_constant("constant_of_higher_rank", 0, (2, 3, 4), (4,)),
    _twice(),
    _difference("equal_scales", (U8, U8), SQUARE),
    _difference("scales_differ", (U8, U8_LOW), SQUARE, RELU),
    _difference("s8_ends", (S8_LOW, S8_HIGH), SQUARE),
    _difference("broadcast_both", (U8, U8_LOW), ((2, 1, 4, 1), (1, 8, 1, 5))),
    _constant(_difference("constant_left", (U8, U8_LOW), ((8, 1, 1), (1, 8, 3, 5))), 0),
    _constant(_difference("constant_scalar", (U8, U8_LOW), ((1, 8, 3, 5), ())), 1),
    _product("equal_scales", (U8, U8), SQUARE),
    _product("gate", (U8, Edge(QType.U8, 1 / 256, 0)), ((1, 8, 4, 5), (1, 8, 1, 1)), RELU6),
    _product("s8_ends", (S8_LOW, S8_HIGH), SQUARE),
    _product("scales_far_apart", (U8, Edge(QType.U8, 1e-7, 3)), SQUARE),
    _product("rank_0", (U8, U8_LOW), ((), ())),
    _product("broadcast_both", (U8, U8_LOW), ((2, 1, 4, 1), (1, 8, 1, 5))),
    _product("higher_rank", (U8, U8_LOW), ((5,), (2, 3, 5))),
    _constant(_product("constant_channels", (U8, U8_LOW), ((1, 8, 3, 5), (8, 1, 1))), 1),
    _constant(_product("constant_scalar", (S8, S8_LOW), ((1, 8, 3, 5), (1,))), 1),
    _constant(_slopes("channels", (U8, SLOPE), ((1, 8, 3, 5), (8, 1, 1))), 1),
    _constant(_slopes("one", (S8, Edge(QType.S8, 0.01, -20)), ((2, 8, 3), (1,))), 1),
    _slopes("computed", (U8, SLOPE), SQUARE),
    _slopes("clamped", (S8_HIGH, S8), ((1, 8, 4, 5), (8, 1, 5)), Clamp(-1.0, 0.5)),
    _clip("relu", (U8, U8_LOW), RELU),
    _clip("relu_s8", (S8, S8), RELU, (3, 7)),
    _clip("relu6", (U8, Edge(QType.U8, 6 / 255, 0))),
    _clip("same_scale", (U8, U8), Clamp(-1.0, 1.0)),
    _clip("low_only", (S8, S8_HIGH), Clamp(low=-1.5)),
    _clip("high_only", (S8, S8_LOW), Clamp(high=2.0)),
    _clip("wider_than_output", (S8, S8_LOW), Clamp(-100.0, 100.0)),
    _clip("rank_1", (U8, U8_HIGH), Clamp(-3.0, -1.0), (13,)),
)


@pytest.mark.tosa
@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case) -> None:
    climb(case)


@pytest.mark.qemu
@pytest.mark.parametrize("case", sampled(CASES), ids=str)
def test_compiled(case: Case, qemu: str) -> None:
    climb_compiled(case)


@st.composite
def edges(draw: st.DrawFn, dtype: QType) -> Edge:
    """Scales over eight octaves, zero points anywhere, the ends more often."""
    zero_point = draw(st.one_of(st.sampled_from((dtype.low, 0, dtype.high)), st.integers(dtype.low, dtype.high)))
    return Edge(dtype, draw(st.floats(0.004, 1.0)), zero_point)


@st.composite
def broadcast_pairs(draw: st.DrawFn) -> tuple[Shape, Shape]:
    """Two shapes that broadcast, dropped to any rank."""
    full = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    pair = []
    for _ in range(2):
        kept = [size if draw(st.booleans()) else 1 for size in full]
        pair.append(tuple(kept[draw(st.integers(0, len(full))) :]))
    return pair[0], pair[1]


@st.composite
def sums(draw: st.DrawFn) -> Case:
    dtype = draw(st.sampled_from((QType.U8, QType.S8)))
    pair = (draw(edges(dtype)), draw(edges(dtype)))
    clamp = draw(st.sampled_from((None, RELU, RELU6)))
    return _add("drawn", pair, draw(broadcast_pairs()), draw(edges(dtype)), clamp)


@st.composite
def clips(draw: st.DrawFn) -> Case:
    dtype = draw(st.sampled_from((QType.U8, QType.S8)))
    bounds = sorted((draw(st.floats(-8, 8)), draw(st.floats(-8, 8))))
    return _clip("drawn", (draw(edges(dtype)), draw(edges(dtype))), Clamp(*bounds))


@pytest.mark.tosa
@given(case=sums())
def test_sums(case: Case) -> None:
    climb(accepted(case))


@pytest.mark.qemu
@FEW
@given(case=sums())
def test_sums_compiled(case: Case, qemu: str) -> None:
    climb_compiled(accepted(case))


@st.composite
def others(draw: st.DrawFn) -> Case:
    """Sub and Mul of any shapes that broadcast, PRelu with slopes that do."""
    dtype = draw(st.sampled_from((QType.U8, QType.S8)))
    op_type = draw(st.sampled_from(("Sub", "Mul", "PRelu")))
    shapes = draw(broadcast_pairs())
    if op_type == "PRelu":
        shapes = (np.broadcast_shapes(*shapes), shapes[1])
    pair = (draw(edges(dtype)), draw(edges(dtype)))
    case = _binary("drawn", op_type, pair, shapes, draw(edges(dtype)), draw(st.sampled_from((None, RELU6))))
    return _constant(case, 1) if draw(st.booleans()) else case


@pytest.mark.tosa
@given(case=others())
def test_others(case: Case) -> None:
    climb(accepted(case))


@pytest.mark.qemu
@FEW
@given(case=others())
def test_others_compiled(case: Case, qemu: str) -> None:
    climb_compiled(accepted(case))


@pytest.mark.tosa
@given(case=clips())
def test_clips(case: Case) -> None:
    climb(accepted(case))


@pytest.mark.qemu
@FEW
@given(case=clips())
def test_clips_compiled(case: Case, qemu: str) -> None:
    climb_compiled(accepted(case))
