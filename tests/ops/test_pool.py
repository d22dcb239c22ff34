"""Average pools that cover their input, on the ladder."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexqdq.ops.unit import Attribute
from hexqdq.qtypes import QType
from tests.ops.cases import S8, S8_HIGH, S8_LOW, U8, U8_HIGH, U8_LOW, Case, Edge, graph_of, unary_unit
from tests.ops.ladder import FEW, accepted, climb, climb_compiled, sampled
from tests.ops.test_elementwise import edges

Shape = tuple[int, ...]


def _pool(name: str, edges: tuple[Edge, Edge], shape: Shape, op_type: str = "GlobalAveragePool") -> Case:
    result = (*shape[:2], 1, 1)
    attributes: dict[str, Attribute] = {}
    if op_type == "AveragePool":
        attributes = {"kernel_shape": shape[2:], "pads": (0, 0, 0, 0), "strides": (1, 1)}
    unit = unary_unit(op_type, edges[0].tensor("x", shape), edges[1].tensor("y", result), attributes)
    return Case(name, graph_of(unit))


CASES = (
    _pool("7x7", (U8, Edge(QType.U8, 0.02, 118)), (1, 40, 7, 7)),
    _pool("same_parameters", (U8_LOW, U8_LOW), (1, 8, 8, 8)),
    _pool("1x1", (S8, S8_LOW), (2, 5, 1, 1)),
    _pool("3x5_s8", (S8, S8), (2, 33, 3, 5)),
    _pool("wide", (U8_HIGH, U8_HIGH), (1, 3, 1, 100)),
    _pool("covers", (U8, U8), (1, 16, 8, 8), "AveragePool"),
    _pool("covers_s8", (S8_HIGH, S8), (1, 64, 5, 2), "AveragePool"),
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
def drawn(draw: st.DrawFn) -> Case:
    shape = draw(st.tuples(st.integers(1, 2), st.integers(1, 40), st.integers(1, 12), st.integers(1, 12)))
    dtype = draw(st.sampled_from((QType.U8, QType.S8)))
    op_type = draw(st.sampled_from(("GlobalAveragePool", "AveragePool")))
    return _pool("drawn", (draw(edges(dtype)), draw(edges(dtype))), shape, op_type)


@pytest.mark.tosa
@given(case=drawn())
def test_drawn(case: Case) -> None:
    climb(accepted(case))


@pytest.mark.qemu
@FEW
@given(case=drawn())
def test_drawn_compiled(case: Case, qemu: str) -> None:
    climb_compiled(accepted(case))
