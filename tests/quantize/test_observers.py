"""What every calibration method promises, over METHODS."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from hexqdq.errors import CalibrationError
from hexqdq.quantize.observers import METHODS
from hexqdq.quantize.observers.base import WIDE_LEVELS, Knobs, Observer, Range
from hexqdq.quantize.observers.histogram import Histogram

Array = NDArray[Any]
FINITE = st.floats(-(2.0**100), 2.0**100, width=32)
SAMPLES = st.lists(hnp.arrays(np.float32, st.integers(1, 20), elements=FINITE), min_size=1, max_size=6)
NEAR_ONE = st.lists(
    hnp.arrays(np.float32, st.integers(1, 20), elements=st.floats(-2, 2, width=32)), min_size=1, max_size=6
)
"""Values whose bins float32 tells apart."""
KNOBS = Knobs(histogram_bins=512)
CLIPPING = ("percentile", "entropy")
every_method = pytest.mark.parametrize("method", METHODS)
fewer = settings(max_examples=30, deadline=None)


def observer(method: str, samples: list[Array], knobs: Knobs = KNOBS) -> Observer:
    made = METHODS[method](knobs)
    for sample in samples:
        made.update(sample)
    return made


def observed(method: str, samples: list[Array], knobs: Knobs = KNOBS) -> Range:
    return observer(method, samples, knobs).range()


@every_method
@fewer
@given(SAMPLES, st.randoms())
def test_order_does_not_matter(method: str, samples: list[Array], random: Any) -> None:
    shuffled = list(samples)
    random.shuffle(shuffled)
    assert observed(method, shuffled) == observed(method, samples)


@every_method
@fewer
@given(SAMPLES, SAMPLES)
def test_merging_equals_seeing_all(method: str, first: list[Array], second: list[Array]) -> None:
    left = observer(method, first)
    left.merge(observer(method, second))
    left.merge(METHODS[method](KNOBS))
    assert left.range() == observed(method, first + second)


@every_method
@fewer
@given(SAMPLES)
def test_range_lies_inside_the_values(method: str, samples: list[Array]) -> None:
    low, high = observed(method, samples)
    values = np.concatenate(samples)
    assert float(values.min()) <= low <= high <= float(values.max())


@every_method
@pytest.mark.parametrize("value", [0.0, 3.5, -2.0, 1e-38, -3e38])
def test_constant(method: str, value: float) -> None:
    exact = float(np.float32(value))
    assert observed(method, [np.full(5, value, np.float32)]) == (exact, exact)


@every_method
def test_zeros_beside_values(method: str) -> None:
    values = np.concatenate([np.zeros(10_000), np.full(100, 4.0)]).astype(np.float32)
    low, high = observed(method, [values])
    assert low == 0.0 and high == 4.0


@every_method
def test_empty_arrays_change_nothing(method: str) -> None:
    values = np.array([1.0, 2.0], np.float32)
    assert observed(method, [values, values[:0]]) == observed(method, [values])


@every_method
def test_what_is_not_finite_is_left_out(method: str) -> None:
    values = np.array([1.0, 2.0, -3.0], np.float32)
    odd = np.array([np.nan, 1.0, np.inf, 2.0, -np.inf, -3.0], np.float32)
    assert observed(method, [odd, np.full(3, np.nan, np.float32)]) == observed(method, [values])


@every_method
def test_nothing_seen_is_an_error(method: str) -> None:
    with pytest.raises(CalibrationError, match="saw no values"):
        METHODS[method]().range()


@every_method
def test_another_method_is_not_merged(method: str) -> None:
    other = next(name for name in METHODS if name != method)
    with pytest.raises(CalibrationError, match="cannot take in a"):
        METHODS[method]().merge(METHODS[other]())


@every_method
def test_known_bounds_change_nothing(method: str) -> None:
    values = np.random.default_rng(4).normal(size=1000).astype(np.float32)
    told = METHODS[method](KNOBS)
    told.update(values, (float(values.min()), float(values.max())))
    assert told.range() == observed(method, [values])


@every_method
def test_state_does_not_grow(method: str) -> None:
    made = METHODS[method](KNOBS)
    sizes = []
    for seed in range(200):
        made.update(np.random.default_rng(seed).normal(size=500).astype(np.float32))
        sizes.append(len(pickle.dumps(made)))
    assert sizes[-1] <= sizes[1] + 512


@every_method
def test_wide_types_keep_at_least_as_much(method: str) -> None:
    made = observer(method, bulk_and_outlier(), Knobs())
    (low, high), (wide_low, wide_high) = made.range(), made.range(WIDE_LEVELS)
    assert wide_low <= low and high <= wide_high


@pytest.mark.parametrize("method", CLIPPING)
def test_outlier_is_cut_wherever_it_comes(method: str) -> None:
    samples = [*np.array_split(bulk_and_outlier()[0], 7), bulk_and_outlier()[1]]
    ranges = {observed(method, [*samples[at:], *samples[:at]], Knobs()) for at in range(len(samples))}
    assert len(ranges) == 1


def bulk_and_outlier() -> list[Array]:
    bulk = np.random.default_rng(0).normal(size=100_000).astype(np.float32)
    return [bulk, np.array([-1000.0], np.float32)]


@pytest.mark.parametrize("method", CLIPPING)
def test_outlier_is_cut(method: str) -> None:
    low, high = observed(method, bulk_and_outlier(), Knobs())
    assert low > -500.0
    assert 2.0 < high < 5.0


def test_minmax_keeps_the_outlier() -> None:
    assert observed("minmax", [np.array([0, 1, -1000], np.float32)]) == (-1000.0, 1.0)


def test_average_is_of_the_samples_extremes() -> None:
    samples = [np.array([-1, 2], np.float32), np.array([-3, 8], np.float32)]
    assert observed("average", samples) == (-2.0, 5.0)


@pytest.mark.parametrize("percentile, expected", [(100.0, (0.0, 9999.0)), (99.0, (50.0, 9949.0)), (80.0, (1000, 8999))])
def test_percentile_cuts_both_sides_alike(percentile: float, expected: Range) -> None:
    values = [np.random.default_rng(0).permutation(10_000).astype(np.float32)]
    assert observed("percentile", values, Knobs(percentile=percentile)) == pytest.approx(expected, abs=2.0)


def test_mse_is_the_least_of_all_ranges() -> None:
    values = np.random.default_rng(1).standard_t(3, 100_000).astype(np.float32)
    found = _error(values, *observed("mse", [values], Knobs()))
    assert found <= 1.01 * min(_error(values, -bound, bound) for bound in np.geomspace(2, np.abs(values).max(), 60))


def _error(values: Array, low: float, high: float) -> float:
    step = (high - low) / 255
    kept = np.clip(values, low, high)
    restored = low + np.rint((kept - low) / step) * step
    return float(np.mean((values - restored) ** 2))


@settings(max_examples=100, deadline=None)
@given(st.one_of(SAMPLES, NEAR_ONE))
def test_histogram_is_that_of_one_pass(samples: list[Array]) -> None:
    grown = Histogram(64)
    for sample in samples:
        grown.add(sample, (float(sample.min()), float(sample.max())))
    values = np.concatenate(samples)
    once = Histogram(64)
    once.add(values, (float(values.min()), float(values.max())))
    assert np.array_equal(grown.counts(), once.counts()) and np.array_equal(grown.edges(), once.edges())
    assert grown.total == values.size == grown.counts().sum() and grown.zeros == np.sum(values == 0)
    assert np.array_equal(np.histogram(values.astype(np.float64), _closed(grown.edges()))[0], grown.counts())


def _closed(edges: Array) -> Array:
    """Edges whose last bin is open above, as the histogram's are."""
    return np.append(edges[:-1], np.nextafter(edges[-1], -np.inf))


def test_memory_does_not_grow() -> None:
    seen = Histogram(512)
    for scale in np.exp2(np.arange(-100, 100)):
        values = (scale * np.random.default_rng(2).normal(size=100)).astype(np.float32)
        seen.add(values, (float(values.min()), float(values.max())))
        assert seen.counts().size <= 512
    assert seen.total == 20_000
