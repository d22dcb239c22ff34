"""Data movements on the ladder."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexqdq.ops.unit import QuantUnit, Tensor
from hexqdq.qtypes import QType
from tests.ops.cases import EDGES, S8, U8, Case, Edge, graph_of, unary_unit
from tests.ops.ladder import FEW, accepted, climb, climb_compiled, sampled

Shape = tuple[int, ...]


def _reshape(name: str, before: Shape, after: Shape, edge: Edge = U8) -> Case:
    shape = Tensor("shape", (len(after),), QType.S64)
    inputs = (edge.tensor("x", before), shape)
    constants = {"shape": np.array(after, np.int64)}
    return Case(name, graph_of(QuantUnit("y_unit", "Reshape", inputs, (edge.tensor("y", after),), {}, constants)))


def _flatten(name: str, shape: Shape, axis: int, edge: Edge = U8) -> Case:
    after = (math.prod(shape[:axis]), math.prod(shape[axis:]))
    unit = unary_unit("Flatten", edge.tensor("x", shape), edge.tensor("y", after), {"axis": axis})
    return Case(name, graph_of(unit))


def _axis(op_type: str, name: str, before: Shape, after: Shape, axes: Shape | None, edge: Edge = U8) -> Case:
    """A Squeeze or Unsqueeze of the axes."""
    held = {} if axes is None else {"axes": np.array(axes, np.int64)}
    inputs = (edge.tensor("x", before), *(Tensor("axes", (len(axes or ()),), QType.S64) for _ in held))
    return Case(name, graph_of(QuantUnit("y_unit", op_type, inputs, (edge.tensor("y", after),), {}, held)))


def _transpose(name: str, shape: Shape, perm: Shape, edge: Edge = U8) -> Case:
    after = tuple(shape[index] for index in perm)
    unit = unary_unit("Transpose", edge.tensor("x", shape), edge.tensor("y", after), {"perm": perm})
    return Case(name, graph_of(unit))


CASES = (
    _reshape("merge", (2, 3, 4), (6, 4)),
    _reshape("split", (6, 4), (1, 2, 3, 4), S8),
    _reshape("same", (2, 3), (2, 3)),
    _flatten("axis_1", (1, 8, 3, 3), 1),
    _flatten("axis_2", (2, 3, 4), 2, S8),
    _flatten("axis_0", (2, 3, 4), 0),
    _axis("Squeeze", "ones", (1, 6, 1, 4), (6, 4), (0, 2)),
    _axis("Squeeze", "negative", (3, 4, 1), (3, 4), (-1,), S8),
    _axis("Squeeze", "all", (1, 6, 1), (6,), None),
    _axis("Unsqueeze", "ends", (3, 4), (1, 3, 4, 1), (0, -1)),
    _transpose("channels_last", (1, 8, 4, 5), (0, 2, 3, 1)),
    _transpose("channels_first", (1, 4, 5, 8), (0, 3, 1, 2), S8),
    _transpose("matrix", (7, 9), (1, 0)),
    _transpose("identity", (3, 4), (0, 1)),
    _transpose("ones_only", (1, 6, 1, 5), (2, 1, 0, 3)),
    _transpose("rank_5", (2, 3, 2, 3, 2), (4, 2, 0, 3, 1)),
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
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=5)))
    edge = draw(st.sampled_from(EDGES))
    kind = draw(st.sampled_from(("transpose", "reshape", "flatten")))
    if kind == "transpose":
        return _transpose("drawn", shape, tuple(draw(st.permutations(range(len(shape))))), edge)
    if kind == "reshape":
        return _reshape("drawn", shape, tuple(draw(st.permutations(shape))), edge)
    return _flatten("drawn", shape, draw(st.integers(0, len(shape))), edge)


@pytest.mark.tosa
@given(case=drawn())
def test_drawn(case: Case) -> None:
    climb(accepted(case))


@pytest.mark.qemu
@FEW
@given(case=drawn())
def test_drawn_compiled(case: Case, qemu: str) -> None:
    climb_compiled(accepted(case))
