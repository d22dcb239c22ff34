"""Gemm and MatMul with constant weights on the ladder."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops.cases import RELU, RELU6, S8, S8_HIGH, S8_LOW, U8_HIGH, U8_LOW, Case, Style, graph_of, matmul_unit
from tests.ops.ladder import FEW, accepted, climb, climb_compiled, sampled
from tests.ops.test_conv import styles


def _gemm(name: str, shape: tuple[int, ...], columns: int, style: Style, trans_b: int = 0) -> Case:
    return Case(name, graph_of(matmul_unit(shape, columns, style, "Gemm", trans_b)))


def _matmul(name: str, shape: tuple[int, ...], columns: int, style: Style | None = None) -> Case:
    return Case(name, graph_of(matmul_unit(shape, columns, style or Style())))


CASES = (
    _gemm("row", (1, 64), 10, Style()),
    _gemm("rows", (5, 32), 16, Style(clamp=RELU)),
    _gemm("trans_b", (3, 17), 10, Style(S8), trans_b=1),
    _gemm("no_bias", (3, 17), 33, Style(bias=False)),
    _gemm("per_tensor", (2, 8), 4, Style(per_channel=False), trans_b=1),
    _gemm("one_by_one", (1, 1), 1, Style()),
    _gemm("deep", (2, 1000), 7, Style(U8_HIGH, extreme=True)),
    _matmul("rank_2", (4, 12), 8),
    _matmul("rank_3", (2, 5, 12), 8, Style(clamp=RELU6)),
    _matmul("rank_4", (2, 3, 5, 7), 6, Style(S8)),
    _matmul("bias_after", (6, 20), 40, Style(U8_LOW)),
    _matmul("no_bias", (6, 20), 3, Style(bias=False)),
    _matmul("s8_zero_point_low", (3, 40), 5, Style(S8_LOW, extreme=True)),
    _matmul("s8_zero_point_high", (3, 40), 5, Style(S8_HIGH, per_channel=False)),
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
    """Any rank that the op takes, odd sizes on both sides of a vector."""
    lead = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    depth, columns = draw(st.integers(1, 70)), draw(st.integers(1, 70))
    style = draw(styles())
    if draw(st.booleans()):
        return _gemm("drawn", (lead[0], depth), columns, style, draw(st.sampled_from((0, 1))))
    return _matmul("drawn", (*lead, depth), columns, style)


@pytest.mark.tosa
@given(case=drawn())
def test_drawn(case: Case) -> None:
    climb(accepted(case))


@pytest.mark.qemu
@FEW
@given(case=drawn())
def test_drawn_compiled(case: Case, qemu: str) -> None:
    climb_compiled(accepted(case))
