"""Functions of one 8-bit input as tables: their error, ops and chains on the ladder, units joined to one table."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hexqdq.compile.tosa import lower_segment
from hexqdq.ops import OPS
from hexqdq.ops.elementwise.program import INPUT, Program, Step
from hexqdq.ops.elementwise.table import CHAIN
from hexqdq.ops.unit import Attribute, Clamp, QuantUnit, UnitGraph
from hexqdq.qtypes import QType
from tests.ops.cases import RELU6, S8, S8_HIGH, S8_LOW, U8, U8_HIGH, U8_LOW, Case, Edge, covering, graph_of, unary_unit
from tests.ops.ladder import FEW, TARGET, accepted, climb, climb_compiled, climb_integers, sampled
from tests.ops.test_elementwise import edges

Shape = tuple[int, ...]
Attributes = Mapping[str, Attribute]
Reals = NDArray[np.float64]

SHAPE = (1, 8, 5, 7)
PROBABILITY = Edge(QType.U8, 1 / 256, 0)
SIGNED_PROBABILITY = Edge(QType.S8, 1 / 256, -128)
SYMMETRIC = Edge(QType.U8, 1 / 128, 128)


def _hard(x: Reals, alpha: float, beta: float) -> Reals:
    line = np.float32(alpha).astype(float) * x + np.float32(beta).astype(float)
    return np.asarray(np.minimum(np.maximum(line, 0), 1), np.float64)


FUNCTIONS: Mapping[str, tuple[Callable[[Reals], Reals], Attributes]] = {
    "Sigmoid": (lambda x: 1 / (1 + np.exp(-x)), {}),
    "HardSigmoid": (lambda x: _hard(x, 0.2, 0.5), {"alpha": 0.2, "beta": 0.5}),
    "HardSwish": (lambda x: x * np.minimum(np.maximum(x / 6 + 0.5, 0), 1), {}),
    "Tanh": (np.tanh, {}),
    "LeakyRelu": (lambda x: np.where(x < 0, x * np.float32(0.1).astype(float), x), {"alpha": 0.1}),
    "Exp": (np.exp, {}),
    "Abs": (np.abs, {}),
    "Neg": (np.negative, {}),
}
SCALES = (1e-6, 0.0007, 0.004, 0.0235, 0.05, 0.1, 1 / 6, 0.5, 3.0, 1e6)


def _unit(op_type: str, edges: tuple[Edge, Edge], shape: Shape = (256,), clamp: Clamp | None = None) -> QuantUnit:
    _, attributes = FUNCTIONS[op_type]
    return unary_unit(op_type, edges[0].tensor("x", shape), edges[1].tensor("y", shape), attributes, clamp)


def _every_value(edge: Edge) -> NDArray[Any]:
    return np.arange(edge.dtype.low, edge.dtype.high + 1).astype(edge.dtype.numpy)


def _table(op_type: str, source: Edge, result: Edge) -> NDArray[Any]:
    (values,) = OPS[op_type].reference(_unit(op_type, (source, result)), [_every_value(source)])
    return values


@pytest.mark.parametrize("zero_point", [0, 1, 128, 255])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("op_type", FUNCTIONS)
def test_every_entry_is_within_half_a_step(op_type: str, scale: float, zero_point: int) -> None:
    source = Edge(QType.U8, scale, zero_point)
    function, _ = FUNCTIONS[op_type]
    reals = (np.arange(256) - zero_point) * source.params.scale[0]
    with np.errstate(over="ignore"):
        exact = np.minimum(function(reals), 1e300)
    for result in (PROBABILITY, SYMMETRIC, S8, covering(-scale * 99, scale * 200, QType.S8)):
        steps = exact / result.params.scale[0] + result.zero_point
        ideal = np.minimum(np.maximum(steps, result.dtype.low), result.dtype.high)
        assert np.abs(_table(op_type, source, result) - ideal).max() <= 0.5 + 1e-9


def test_tables_are_the_same_everywhere() -> None:
    digest = hashlib.sha256()
    for op_type in FUNCTIONS:
        for scale in SCALES:
            digest.update(_table(op_type, Edge(QType.U8, scale, 100), PROBABILITY).astype(np.uint8).tobytes())
    assert digest.hexdigest() == DIGEST


DIGEST = "84e742bde0281fbf619aa56afd05c5c20e2d018fbc21b2021713ea5fd125a35c"
"""Of all tables above, wherever they are made."""


def _chain(name: str, edges: tuple[Edge, Edge], *steps: Step, shape: Shape = SHAPE) -> Case:
    attributes: Attributes = {"program": Program(steps).to_text()}
    return Case(name, graph_of(unary_unit(CHAIN, edges[0].tensor("x", shape), edges[1].tensor("y", shape), attributes)))


def _case(name: str, op_type: str, edges: tuple[Edge, Edge], shape: Shape = SHAPE, clamp: Clamp | None = None) -> Case:
    return Case(name, graph_of(_unit(op_type, edges, shape, clamp)))


SILU = (Step("Sigmoid", (INPUT,)), Step("Mul", (INPUT, 0)))
HARD_SWISH = (
    Step("Add", (INPUT, 3.0)),
    Step("Clip", (0, 0.0, 6.0)),
    Step("Mul", (INPUT, 1)),
    Step("Div", (2, 6.0)),
)
CASES = (
    _case("u8", "Sigmoid", (U8, PROBABILITY)),
    _case("s8", "Sigmoid", (S8, SIGNED_PROBABILITY), (300,)),
    _case("short_rows", "Sigmoid", (U8, PROBABILITY), (3, 130)),
    _case("scalar", "Sigmoid", (U8, PROBABILITY), ()),
    _case("clamped", "Sigmoid", (U8, PROBABILITY), clamp=Clamp(0.25, 0.75)),
    _case("u8", "HardSigmoid", (U8, PROBABILITY)),
    _case("u8", "HardSwish", (U8, U8), (2, 3)),
    _case("u8", "Tanh", (U8, SYMMETRIC), (1, 200, 3)),
    _case("s8", "LeakyRelu", (S8, S8), (1, 200, 3)),
    _case("relu6", "LeakyRelu", (U8_HIGH, Edge(QType.U8, 0.03, 7)), clamp=RELU6),
    _case("u8", "Exp", (Edge(QType.U8, 0.02, 200), covering(0, 3, QType.U8))),
    _case("s8", "Abs", (S8, S8_LOW)),
    _case("s8", "Neg", (S8_LOW, S8_HIGH)),
    _chain("silu", (U8, covering(-0.3, 6, QType.U8)), *SILU),
    _chain("silu_s8", (S8, S8), *SILU, shape=(5, 33)),
    _chain("hard_swish", (U8, covering(-0.4, 6, QType.U8)), *HARD_SWISH),
    _chain("affine", (U8, U8_LOW), Step("Mul", (INPUT, 0.37)), Step("Sub", (1.5, 0))),
    _chain("extremes", (S8, S8_HIGH), Step("Min", (INPUT, 1.0)), Step("Max", (-2.0, 0)), Step("Neg", (1,))),
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
    dtype = draw(st.sampled_from((QType.U8, QType.S8)))
    shape = tuple(draw(st.lists(st.integers(1, 40), max_size=3)))
    pair = (draw(edges(dtype)), draw(edges(dtype)))
    return _case("drawn", draw(st.sampled_from(sorted(FUNCTIONS))), pair, shape)


@pytest.mark.tosa
@given(case=drawn())
def test_drawn(case: Case) -> None:
    climb(accepted(case))


@pytest.mark.qemu
@FEW
@given(case=drawn())
def test_drawn_compiled(case: Case, qemu: str) -> None:
    climb_compiled(accepted(case))


def test_a_program_survives_text() -> None:
    program = Program((*SILU, Step("LeakyRelu", (1,), {"alpha": 0.25}), Step("Clip", (2, None, 0.1))))
    assert Program.from_text(program.to_text()) == program


def test_a_chain_that_divides_by_zero_is_refused() -> None:
    (unit,) = _chain("inverse", (U8, U8), Step("Div", (1.0, INPUT))).graph.units
    refusal = OPS[CHAIN].refusal(unit, TARGET)
    assert refusal is not None and "divides by zero" in refusal


def _silu_units(result: Edge) -> UnitGraph:
    """Sigmoid and Mul as units of their own, as models have them with Q and DQ in between."""
    x = U8.tensor("x", SHAPE)
    half = unary_unit("Sigmoid", x, PROBABILITY.tensor("half", SHAPE))
    product = QuantUnit("product", "Mul", (x, half.output), (result.tensor("y", SHAPE),))
    return graph_of(half, product)


def _affine_units() -> UnitGraph:
    """Units with constants, then one of another tensor."""
    x, c = S8.tensor("x", SHAPE), S8.tensor("c", (1, 1, 1))
    constants = {"c": np.full((1, 1, 1), 90, np.int8)}
    scaled = QuantUnit("scaled", "Mul", (c, x), (S8_LOW.tensor("m", SHAPE),), {}, constants)
    moved = QuantUnit("moved", "Sub", (scaled.output, c), (S8.tensor("s", SHAPE),), {}, constants)
    total = QuantUnit("total", "Add", (moved.output, S8.tensor("z", SHAPE)), (S8.tensor("y", SHAPE),))
    return graph_of(scaled, moved, total)


def _square() -> UnitGraph:
    x = S8.tensor("x", SHAPE)
    return graph_of(QuantUnit("square", "Mul", (x, x), (S8.tensor("y", SHAPE),)))


def _silu_with_both_outputs() -> UnitGraph:
    return replace(_silu_units(U8), outputs=(PROBABILITY.tensor("half", SHAPE), U8.tensor("y", SHAPE)))


JOINED = (
    (Case("silu", _silu_units(covering(-0.3, 6, QType.U8))), 1),
    (Case("affine", _affine_units()), 1),
    (Case("square", _square()), 1),
    (Case("both_outputs", _silu_with_both_outputs()), 2),
)


@pytest.mark.qemu
@pytest.mark.tosa
@pytest.mark.parametrize(("case", "tables"), JOINED, ids=str)
def test_units_on_one_tensor_become_one_table(case: Case, tables: int, qemu: str) -> None:
    assert lower_segment(case.graph).text.count("tosa.table") == tables
    climb_integers(case)
    climb_compiled(case)
