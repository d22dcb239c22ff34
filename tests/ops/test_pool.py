"""Pools of windows, means over whole axes and ArgMax, on the ladder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexqdq.ops import OPS
from hexqdq.ops.unit import Attribute, Clamp, QuantUnit, Tensor
from hexqdq.qtypes import QType
from tests.ops.cases import RELU6, S8, S8_HIGH, S8_LOW, U8, U8_HIGH, U8_LOW, Case, Edge, graph_of, unary_unit
from tests.ops.ladder import FEW, TARGET, accepted, climb, climb_compiled, sampled
from tests.ops.test_elementwise import edges

Shape = tuple[int, ...]
Edges = tuple[Edge, Edge]
Options = Mapping[str, int]
NONE: Options = {}
CEIL: Options = {"ceil_mode": 1}
COUNT_PADS: Options = {"count_include_pad": 1}


def _outputs(size: int, kernel: int, stride: int, pads: tuple[int, int], ceil: bool) -> int:
    """Windows along an axis; with ``ceil`` a further one where it starts in the input or before it."""
    reach = size + sum(pads) - kernel
    count = reach // stride + 1
    further = ceil and reach % stride > 0 and count * stride < size + pads[0]
    return count + further


@dataclass(frozen=True)
class Geometry:
    """Sizes of a pool; ``pads`` are ONNX's: all that come before, then all after."""

    shape: Shape
    kernel: Shape
    strides: Shape = (1, 1)
    pads: Shape = (0, 0, 0, 0)

    def __str__(self) -> str:
        return "_".join("x".join(map(str, part)) for part in (self.shape, self.kernel, self.strides, self.pads))

    def outputs(self, ceil: bool) -> Shape:
        """The output's spatial sizes."""
        rank = len(self.kernel)
        pads = zip(self.pads[:rank], self.pads[rank:], strict=True)
        numbers = zip(self.shape[2:], self.kernel, self.strides, pads, strict=True)
        return tuple(_outputs(*item, ceil) for item in numbers)


def _pool(op_type: str, edges: Edges, geometry: Geometry, options: Options, clamp: Clamp | None) -> Case:
    attributes: dict[str, Attribute] = {
        "kernel_shape": geometry.kernel,
        "strides": geometry.strides,
        "pads": geometry.pads,
        **options,
    }
    result = edges[1].tensor("y", (*geometry.shape[:2], *geometry.outputs("ceil_mode" in options)))
    unit = unary_unit(op_type, edges[0].tensor("x", geometry.shape), result, attributes, clamp)
    return Case("_".join([str(geometry), *options]), graph_of(unit))


def _average(edges: Edges, *numbers: Shape, clamp: Clamp | None = None, options: Options = NONE) -> Case:
    return _pool("AveragePool", edges, Geometry(*numbers), options, clamp)


def _maximum(edge: Edge, *numbers: Shape, clamp: Clamp | None = None, options: Options = NONE) -> Case:
    return _pool("MaxPool", (edge, edge), Geometry(*numbers), options, clamp)


def _global(name: str, edges: Edges, shape: Shape) -> Case:
    result = edges[1].tensor("y", (*shape[:2], *[1] * (len(shape) - 2)))
    return Case(name, graph_of(unary_unit("GlobalAveragePool", edges[0].tensor("x", shape), result)))


def _mean(name: str, edges: Edges, shape: Shape, axes: Shape | None, keepdims: int = 1, noop: int = 0) -> Case:
    """ReduceMean; without axes over all of them, or over none where ``noop``."""
    source = edges[0].tensor("x", shape)
    taken = {axis % len(shape) for axis in (range(len(shape)) if axes is None else axes)}
    if axes is None and noop:
        taken = set()
    sizes = [1 if axis in taken else size for axis, size in enumerate(shape) if keepdims or axis not in taken]
    inputs: tuple[Tensor, ...] = (source,)
    constants = {}
    if axes is not None:
        inputs = (source, Tensor("axes", (len(axes),), QType.S64))
        constants = {"axes": np.array(axes, np.int64)}
    attributes: dict[str, Attribute] = {"keepdims": keepdims, "noop_with_empty_axes": noop}
    unit = QuantUnit("y_unit", "ReduceMean", inputs, (edges[1].tensor("y", tuple(sizes)),), attributes, constants)
    return Case(name, graph_of(unit))


def _argmax(name: str, edge: Edge, shape: Shape, axis: int, keepdims: int = 1, last: int = 0) -> Case:
    place = axis % len(shape)
    sizes = [1 if index == place else size for index, size in enumerate(shape) if keepdims or index != place]
    result = Tensor("y", tuple(sizes), QType.S64)
    attributes: dict[str, Attribute] = {"axis": axis, "keepdims": keepdims, "select_last_index": last}
    return Case(name, graph_of(unary_unit("ArgMax", edge.tensor("x", shape), result, attributes)))


SAME = (1, 1, 1, 1)
CASES = (
    _average((U8, Edge(QType.U8, 0.03, 90)), (1, 8, 9, 10), (2, 2), (2, 2)),
    _average((S8, S8), (1, 8, 9, 10), (3, 3), (2, 2), SAME),
    _average((U8, U8), (1, 8, 9, 10), (3, 3), (2, 2), SAME, options=COUNT_PADS),
    _average((U8, U8), (1, 8, 9, 10), (3, 3), (2, 2), SAME, options={**COUNT_PADS, **CEIL}),
    _average((U8, U8), (1, 8, 10, 10), (3, 3), (2, 2), SAME, options=CEIL),
    _average((U8_HIGH, U8), (2, 5, 9, 10), (3, 2), (2, 3), (0, 0, 1, 0), options=CEIL),
    _average((S8, S8_LOW), (1, 40, 12, 12), (9, 9), (1, 1), (4, 4, 4, 4)),
    _average((U8, U8), (1, 2, 20, 20), (15, 15), (1, 1), (7, 7, 7, 7)),
    _average((U8, U8), (1, 16, 8, 8), (8, 8)),
    _average((S8_HIGH, S8), (1, 64, 5, 2), (5, 2), clamp=RELU6),
    _average((U8, U8), (1, 3, 13), (3,), (2,), (1, 0)),
    _average((U8, U8), (1, 3, 9, 9), (2, 2), (4, 4)),
    _maximum(U8, (1, 8, 9, 10), (2, 2), (2, 2)),
    _maximum(S8, (1, 8, 9, 10), (3, 3), (2, 2), SAME),
    _maximum(U8, (2, 5, 9, 10), (3, 3), (2, 2), (0, 0, 1, 1), options=CEIL),
    _maximum(U8, (1, 33, 13, 13), (5, 5), (1, 1), (2, 2, 2, 2)),
    _maximum(S8, (1, 3, 17, 19), (7, 5), (2, 3), (3, 2, 3, 1), options=CEIL),
    _maximum(U8, (1, 130, 7, 7), (7, 7)),
    _maximum(U8, (1, 3, 13), (3,), (2,), (1, 0)),
    _maximum(S8_LOW, (1, 4, 6, 6), (2, 2), (2, 2), clamp=Clamp(0.5, 4.0)),
    _global("7x7", (U8, Edge(QType.U8, 0.02, 118)), (1, 40, 7, 7)),
    _global("same_parameters", (U8_LOW, U8_LOW), (1, 8, 8, 8)),
    _global("1x1", (S8, S8_LOW), (2, 5, 1, 1)),
    _global("3x5_s8", (S8, S8), (2, 33, 3, 5)),
    _global("wide", (U8_HIGH, U8_HIGH), (1, 3, 1, 100)),
    _global("one_axis", (U8, U8), (2, 3, 50)),
    _mean("spatial", (U8, U8), (1, 24, 7, 7), (2, 3)),
    _mean("spatial_gone", (U8, U8), (2, 24, 7, 7), (-1, -2), 0),
    _mean("channels", (S8, S8), (2, 24, 3, 4), (1,)),
    _mean("outer_and_inner", (U8, U8_LOW), (3, 4, 5, 6), (0, 2), 0),
    _mean("last", (U8, U8), (5, 33), (1,), 0),
    _mean("everything", (S8, S8), (3, 4, 5), None),
    _mean("to_a_scalar", (U8, U8), (3, 4, 5), None, 0),
    _mean("of_rank_1", (U8, U8), (7,), (0,), 0),
    _mean("nothing", (U8, U8_LOW), (3, 4, 5), None, noop=1),
    _argmax("channels", U8, (1, 21, 6, 5), 1, 0),
    _argmax("channels_kept", S8, (2, 21, 6, 5), 1),
    _argmax("row", U8, (4, 100), -1, 0),
    _argmax("last_of_equals", S8, (4, 10, 3), 1, 1, 1),
    _argmax("rank_1", U8, (40,), 0, 0),
    _argmax("rank_1_last", U8, (40,), 0, 1, 1),
    _argmax("single", U8, (3, 1, 4), 1, 0),
    _argmax("first_axis", S8, (9, 4), 0),
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
def pools(draw: st.DrawFn) -> Case:
    """Windows of any size, pads smaller than they are, both ways of counting and of rounding."""
    dtype = draw(st.sampled_from((QType.U8, QType.S8)))
    rank = draw(st.sampled_from((1, 2, 2, 2)))
    kernel = tuple(draw(st.integers(1, 7)) for _ in range(rank))
    pads = tuple(draw(st.integers(0, size - 1)) for size in (*kernel, *kernel))
    sizes = tuple(draw(st.integers(size, 14)) for size in kernel)
    shape = (draw(st.integers(1, 2)), draw(st.integers(1, 40)), *sizes)
    strides = tuple(draw(st.integers(1, 4)) for _ in range(rank))
    options = CEIL if draw(st.booleans()) else NONE
    first = draw(edges(dtype))
    if draw(st.booleans()):
        return _maximum(first, shape, kernel, strides, pads, options=options)
    counted = {"count_include_pad": draw(st.integers(0, 1))}
    return _average((first, draw(edges(dtype))), shape, kernel, strides, pads, options={**options, **counted})


@st.composite
def reductions(draw: st.DrawFn) -> Case:
    """Means over any axes, ArgMax over any one."""
    dtype = draw(st.sampled_from((QType.U8, QType.S8)))
    shape = tuple(draw(st.lists(st.integers(1, 12), min_size=1, max_size=4)))
    keepdims = draw(st.integers(0, 1))
    axis = st.integers(-len(shape), len(shape) - 1)
    if draw(st.booleans()):
        return _argmax("drawn", draw(edges(dtype)), shape, draw(axis), keepdims, draw(st.integers(0, 1)))
    axes = draw(st.lists(axis, min_size=1, max_size=len(shape), unique_by=lambda item: item % len(shape)))
    return _mean("drawn", (draw(edges(dtype)), draw(edges(dtype))), shape, tuple(axes), keepdims)


@pytest.mark.tosa
@given(case=pools())
def test_drawn(case: Case) -> None:
    climb(accepted(case))


@pytest.mark.qemu
@FEW
@given(case=pools())
def test_drawn_compiled(case: Case, qemu: str) -> None:
    climb_compiled(accepted(case))


@pytest.mark.tosa
@given(case=reductions())
def test_reductions(case: Case) -> None:
    climb(accepted(case))


@pytest.mark.qemu
@FEW
@given(case=reductions())
def test_reductions_compiled(case: Case, qemu: str) -> None:
    climb_compiled(accepted(case))


def test_counts_without_a_common_multiple_are_refused_where_they_would_cost_a_step() -> None:
    fine = Edge(QType.U8, 0.0005, 0)
    (unit,) = _average((U8, fine), (1, 2, 40, 40), (29, 29), (1, 1), (14, 14, 14, 14)).graph.units
    refusal = OPS["AveragePool"].refusal(unit, TARGET)
    assert refusal is not None and "leave an error of" in refusal
