"""Softmax on the ladder."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexqdq.qtypes import QType
from tests.ops.cases import S8, S8_LOW, U8, Case, Edge, graph_of, unary_unit
from tests.ops.ladder import FEW, accepted, climb, climb_compiled, sampled

Shape = tuple[int, ...]
PROBABILITY = Edge(QType.U8, 1 / 256, 0)
SIGNED_PROBABILITY = Edge(QType.S8, 1 / 256, -128)


def _softmax(name: str, edges: tuple[Edge, Edge], shape: Shape, axis: int = -1) -> Case:
    unit = unary_unit("Softmax", edges[0].tensor("x", shape), edges[1].tensor("y", shape), {"axis": axis})
    return Case(name, graph_of(unit))


CASES = (
    _softmax("row", (U8, PROBABILITY), (1, 10)),
    _softmax("rows", (U8, PROBABILITY), (7, 33)),
    _softmax("one_element", (U8, PROBABILITY), (3, 1)),
    _softmax("rank_1", (U8, PROBABILITY), (12,)),
    _softmax("long", (U8, PROBABILITY), (2, 1001)),
    _softmax("middle_axis", (U8, PROBABILITY), (2, 6, 5), 1),
    _softmax("channels", (U8, PROBABILITY), (1, 5, 4, 3), 1),
    _softmax("first_axis", (U8, PROBABILITY), (9, 4), 0),
    _softmax("s8", (S8, SIGNED_PROBABILITY), (4, 12)),
    _softmax("coarse", (Edge(QType.S8, 1.0, 0), SIGNED_PROBABILITY), (4, 12)),
    _softmax("fine", (Edge(QType.U8, 1e-5, 0), PROBABILITY), (4, 12)),
    _softmax("output_saturates", (U8, Edge(QType.U8, 1 / 1024, 0)), (4, 12)),
    _softmax("output_offset", (S8, S8_LOW), (4, 12)),
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
    """Any axis; scales from all equal to one winner."""
    shape = draw(st.lists(st.integers(1, 20), min_size=1, max_size=4))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    dtype = draw(st.sampled_from((QType.U8, QType.S8)))
    source = Edge(dtype, draw(st.floats(1e-5, 2.0)), draw(st.integers(dtype.low, dtype.high)))
    return _softmax("drawn", (source, Edge(dtype, 1 / 256, dtype.low)), tuple(shape), axis)


@pytest.mark.tosa
@given(case=drawn())
def test_drawn(case: Case) -> None:
    climb(accepted(case))


@pytest.mark.qemu
@FEW
@given(case=drawn())
def test_drawn_compiled(case: Case, qemu: str) -> None:
    climb_compiled(accepted(case))
