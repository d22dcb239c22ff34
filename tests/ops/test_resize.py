"""Resize on the ladder: nearest in every mode, linear with one rounding."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexqdq.ops.movement.coordinates import EXACT, NEAREST
from hexqdq.ops.unit import Array, Attribute, Clamp
from tests.ops.cases import EDGES, RELU, S8, U8, Case, Edge, graph_of
from tests.ops.ladder import FEW, accepted, climb, climb_compiled, sampled
from tests.ops.test_movement import movement

Shape = tuple[int, ...]
Scales = tuple[float, ...]


def _resize(
    name: str,
    shape: Shape,
    scales: Scales | None,
    sizes: Shape | None = None,
    mode: str = "nearest",
    place: str = "half_pixel",
    choice: str = "round_prefer_floor",
    edges: tuple[Edge, Edge] = (U8, U8),
    clamp: Clamp | None = None,
) -> Case:
    """A Resize by scales, or to sizes where there are none."""
    constants: dict[str, Array | None] = {"roi": None}
    if scales is not None:
        exact = [np.float32(scale) for scale in scales]
        after = tuple(math.floor(float(size * scale)) for size, scale in zip(shape, exact, strict=True))
        constants["scales"] = np.array(exact, np.float32)
    else:
        assert sizes is not None
        after = sizes
        constants |= {"scales": None, "sizes": np.array(sizes, np.int64)}
    attributes: dict[str, Attribute] = {"mode": mode, "coordinate_transformation_mode": place}
    attributes |= {"nearest_mode": choice} if mode == "nearest" else {}
    source, result = (
        edge.tensor(name_, extent) for edge, name_, extent in zip(edges, "xy", (shape, after), strict=True)
    )
    return Case(name, graph_of(movement("Resize", [source], [result], constants, attributes, clamp)))


def _linear(
    name: str, shape: Shape, scales: Scales | None, sizes: Shape | None = None, place: str = "half_pixel"
) -> Case:
    return _resize(name, shape, scales, sizes, "linear", place)


WIDER = Edge(scale=0.07, zero_point=90)
CASES = (
    _resize("up_2", (1, 3, 4, 5), (1, 1, 2, 2), place="asymmetric", choice="floor"),
    _resize("up_2_half_pixel", (1, 3, 4, 5), (1, 1, 2, 2), edges=(S8, S8)),
    _resize("up_1_5", (1, 2, 6, 7), (1, 1, 1.5, 1.5)),
    _resize("down_2", (1, 2, 6, 7), (1, 1, 0.5, 0.5), place="asymmetric", choice="ceil"),
    _resize("to_sizes", (1, 2, 5, 7), None, (1, 2, 13, 3), place="align_corners", choice="round_prefer_ceil"),
    _resize("many_runs", (1, 2, 30, 3), None, (1, 2, 47, 3), place="asymmetric", choice="floor"),
    _resize("channels_too", (2, 3, 2, 2), (1, 2, 3, 1), place="asymmetric", choice="floor"),
    _resize("near_ties", (1, 1, 14, 7), (1, 1, 1.2, 0.6), place="asymmetric", choice="round_prefer_ceil"),
    _resize("same_shape", (1, 1, 7, 5), (1, 1, 1.1, 1.05), place="tf_half_pixel_for_nn", choice="floor"),
    _resize("tf", (1, 1, 4, 4), (1, 1, 1.75, 2), place="tf_half_pixel_for_nn", choice="floor"),
    _resize("linear_of_rank_2", (5, 6), (2, 2), mode="linear"),
    _linear("up_2", (1, 3, 4, 5), (1, 1, 2, 2)),
    _linear("up_4_asymmetric", (1, 2, 3, 5), (1, 1, 4, 4), place="asymmetric"),
    _linear("corners", (1, 3, 5, 3), None, (1, 3, 33, 17), place="align_corners"),
    _linear("corners_of_one", (1, 3, 1, 1), None, (1, 3, 4, 5), place="align_corners"),
    _linear("down_2", (1, 2, 6, 8), (1, 1, 0.5, 0.5)),
    _linear("pytorch", (1, 2, 6, 8), None, (1, 2, 9, 1), place="pytorch_half_pixel"),
    _linear("odd_ratio", (1, 2, 7, 11), None, (1, 2, 11, 29)),
    _linear("rounded_weights", (1, 2, 9, 5), (1, 1, 1.2345, 2.71)),
    _linear("width_only", (1, 4, 3, 5), (1, 1, 1, 3), place="half_pixel_symmetric"),
    _resize("linear_other_scale", (1, 2, 4, 4), (1, 1, 2, 2), mode="linear", edges=(U8, WIDER), clamp=RELU),
    _resize("linear_signed", (1, 2, 4, 4), (1, 1, 2, 3), mode="linear", edges=(S8, S8)),
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
    shape = (1, draw(st.integers(1, 3)), draw(st.integers(1, 9)), draw(st.integers(1, 9)))
    mode = draw(st.sampled_from(("nearest", "linear")))
    known = [place for place in EXACT if mode == "nearest" or place != "tf_half_pixel_for_nn"]
    place, choice = draw(st.sampled_from(known)), draw(st.sampled_from(tuple(NEAREST)))
    edge = draw(st.sampled_from(EDGES))
    if draw(st.booleans()):
        sizes = (*shape[:2], draw(st.integers(1, 20)), draw(st.integers(1, 20)))
        return _resize("drawn", shape, None, sizes, mode, place, choice, (edge, edge))
    factor = st.sampled_from((0.3, 0.5, 0.6, 0.75, 1.0, 1.1, 1.2, 1.5, 2.0, 2.2, 3.0))
    height, width = (max(draw(factor), 1 / size + 1e-3) for size in shape[2:])
    return _resize("drawn", shape, (1, 1, height, width), None, mode, place, choice, (edge, edge))


@pytest.mark.tosa
@given(case=drawn())
def test_drawn(case: Case) -> None:
    climb(accepted(case))


@pytest.mark.qemu
@FEW
@given(case=drawn())
def test_drawn_compiled(case: Case, qemu: str) -> None:
    climb_compiled(accepted(case))
