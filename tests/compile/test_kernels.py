"""Pieces of kernels: tiles, packed weights, the rescaling product at the ends of its domain."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexqdq.compile.kernels.micro import Tile, best_tile, micro_kernel
from hexqdq.compile.kernels.pack import packed_weights
from hexqdq.compile.kernels.style import style_of
from hexqdq.compile.kernels.text import Text
from hexqdq.compile.kernels.writer import Lanes
from hexqdq.compile.linalg.nest import Access, Contraction, Stage
from hexqdq.compile.linalg.read import copy_body
from hexqdq.compile.product import TosaSegment
from hexqdq.ops.unit import Array
from hexqdq.target import TARGETS
from tests.compile.running import check
from tests.compile.segments import Writer


@given(st.integers(1, 300), st.integers(1, 60), st.sampled_from([6, 20, 24]))
def test_a_tile_fits_registers_and_tensor(pixels: int, vectors: int, accumulators: int) -> None:
    tile = best_tile(pixels, vectors, Tile(8, 5), accumulators)
    assert 1 <= tile.rows <= min(8, pixels) and 1 <= tile.vectors <= min(5, vectors)
    assert tile.rows * tile.vectors <= accumulators


@given(st.integers(1, 500), st.integers(0, 128))
def test_vectors_cover_a_loop(extent: int, size: int) -> None:
    lanes = Lanes(extent, min(size, extent))
    starts = [min(chunk * lanes.step, extent - lanes.step) for chunk in range(lanes.count)]
    assert {start + lane for start in starts for lane in range(lanes.step)} == set(range(extent))


def contraction(channels: int, taps: tuple[int, ...], depth: int, zero_points: tuple[int, int]) -> Contraction:
    strides = tuple(int(np.prod((*taps[:-1], depth)[i + 1 :])) for i in range(len(taps)))
    weights = Access("w", (int(np.prod(taps[:-1])) * depth, *strides))
    activation, write = Access("a", (1, *strides)), Access("y", (channels, 1))
    return Contraction(
        (1,), taps, channels, depth, activation, weights, *zero_points, None, write, Stage(copy_body("i32"))
    )


@given(
    st.integers(1, 70),
    st.sampled_from([((3, 8), 8), ((2, 4), 3), ((4,), 1), ((2, 2, 12), 10)]),
    st.tuples(st.integers(-128, 127), st.integers(-128, 127)),
    st.integers(0, 2**32 - 1),
)
def test_packed_weights_give_the_sums(
    channels: int, shape: tuple[tuple[int, ...], int], zero_points: tuple[int, int], seed: int
) -> None:
    taps, depth = shape
    rng = np.random.default_rng(seed)
    weights = rng.integers(-128, 128, (channels, *taps[:-1], depth)).astype(np.int8)
    values = rng.integers(-128, 128, taps)
    packed = packed_weights(contraction(channels, taps, depth, zero_points), weights.tobytes(), None)
    unsigned = (values + 128).reshape(-1, 4)
    products = np.einsum("bwlc,wc->bl", packed.weights.astype(np.int64), unsigned).reshape(-1)
    found = packed.start + products - packed.zero_point * unsigned.sum()
    centred = weights.astype(np.int64) - zero_points[1]
    expected = (centred * (values[..., :depth] - zero_points[0])).reshape(channels, -1).sum(axis=1)
    assert np.array_equal(found[:channels], expected)
    assert not found[channels:].any() or packed.zero_point


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_every_target_has_a_micro_kernel(target: object) -> None:
    style = style_of(target)  # type: ignore[arg-type]
    micro, text = micro_kernel(style, 64, 0), Text()
    text.emit("")
    tile = micro.tile(7, 64 // micro.lanes)
    assert tile.rows * tile.vectors >= 4 and 32 % micro.lanes == 0
    assert micro.accumulator.startswith("vector<")


def rescaled(shifts: tuple[int, ...], multipliers: list[int]) -> TosaSegment:
    """An i32 tensor rescaled per channel by each shift."""
    writer = Writer()
    value = writer.input((9, len(multipliers)), "i32")
    results = [writer.rescale(value, multipliers, shift, (0, 0), "i32") for shift in shifts]
    return writer.segment(*results)


ENDS = [0, 1, 2, 3, 16384, 16385, 20000, 32766, 32767]


@pytest.mark.parametrize("width", [9, 64, 160])
def test_16_bit_products_round_once(width: int, qemu: str) -> None:
    rng = np.random.default_rng(0)
    multipliers: Array = np.concatenate([ENDS, rng.integers(0, 32768, width - len(ENDS))])
    check(rescaled((16, 17, 18, 30, 31, 32, 45, 62), multipliers.tolist()))


def test_32_bit_products_round_once(qemu: str) -> None:
    rng = np.random.default_rng(1)
    multipliers: Array = np.concatenate([[1 << 30, 2**31 - 1], rng.integers(1 << 30, 2**31, 38)])
    check(rescaled((32, 33, 47, 62), multipliers.tolist()))
