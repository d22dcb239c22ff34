"""Gemm and MatMul with constant weights on the ladder."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexqdq.qtypes import QType
from tests.ops.cases import (
    EDGES,
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
    Style,
    graph_of,
    matmul_unit,
    product_unit,
)
from tests.ops.ladder import FEW, accepted, climb, climb_compiled, sampled
from tests.ops.test_conv import styles


def _gemm(name: str, shape: tuple[int, ...], columns: int, style: Style, trans_b: int = 0) -> Case:
    return Case(name, graph_of(matmul_unit(shape, columns, style, "Gemm", trans_b)))


def _matmul(name: str, shape: tuple[int, ...], columns: int, style: Style | None = None) -> Case:
    return Case(name, graph_of(matmul_unit(shape, columns, style or Style())))


def _product(name: str, left: tuple[int, ...], right: tuple[int, ...], edge: Edge = U8, constant: str = "") -> Case:
    """A MatMul of two activations; ``constant`` names the one that is no input."""
    a, b = edge.tensor("a", left), replace(edge, scale=0.04, zero_point=edge.zero_point // 2).tensor("b", right)
    shape = left if constant == "a" else right
    values = np.random.default_rng(5).integers(edge.dtype.low, edge.dtype.high + 1, shape).astype(edge.dtype.numpy)
    return Case(name, graph_of(product_unit(a, b, {constant: values} if constant else None)))


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
    _matmul("weights_u8", (3, 40), 37, Style(weight_dtype=QType.U8, weight_zero_points=(200,), per_channel=False)),
    _gemm("weights_u8", (2, 65), 9, Style(S8, weight_dtype=QType.U8, weight_zero_points=(1,)), trans_b=1),
    _gemm("bias_float", (2, 9), 40, Style(float_bias=True)),
    _product("rank_2", (5, 12), (12, 8)),
    _product("rank_3", (3, 5, 12), (3, 12, 33), S8),
    _product("rank_4", (1, 4, 7, 20), (1, 4, 20, 7)),
    _product("one_right", (2, 3, 5, 12), (12, 8)),
    _product("one_left", (5, 12), (3, 12, 8)),
    _product("batches_broadcast", (2, 1, 3, 5), (1, 3, 5, 4), S8_LOW),
    _product("row_times_column", (1, 64), (64, 1), U8_HIGH),
    _product("outer", (16, 1), (1, 40)),
    _product("constant_left", (9, 12), (12, 8), constant="a"),
    _product("constant_batches", (2, 5, 12), (2, 12, 8), constant="b"),
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
def operands(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shapes of two matrices whose batches broadcast."""
    rows, depth, columns = draw(st.integers(1, 9)), draw(st.integers(1, 40)), draw(st.integers(1, 40))
    batch = draw(st.lists(st.integers(1, 3), max_size=2))

    def shown(sizes: list[int]) -> tuple[int, ...]:
        kept = [size if draw(st.booleans()) else 1 for size in sizes]
        return tuple(kept[draw(st.integers(0, len(kept))) :])

    return (*shown(batch), rows, depth), (*shown(batch), depth, columns)


@st.composite
def drawn(draw: st.DrawFn) -> Case:
    """Any rank that the op takes, odd sizes on both sides of a vector, constant weights or two activations."""
    if draw(st.integers(0, 2)) == 0:
        return _product("drawn", *draw(operands()), draw(st.sampled_from(EDGES)), draw(st.sampled_from(("", "a", "b"))))
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
