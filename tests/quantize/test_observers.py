"""What every calibration method promises, over METHODS."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from hexqdq.errors import CalibrationError
from hexqdq.quantize.observers import METHODS
from hexqdq.quantize.observers.base import Range

Array = NDArray[Any]
FINITE = st.floats(-(2.0**100), 2.0**100, width=32)
SAMPLES = st.lists(hnp.arrays(np.float32, st.integers(1, 20), elements=FINITE), min_size=1, max_size=6)
every_method = pytest.mark.parametrize("method", METHODS)


def observed(method: str, samples: list[Array]) -> Range:
    observer = METHODS[method]()
    for sample in samples:
        observer.update(sample)
    return observer.range()


@every_method
@given(SAMPLES, st.randoms())
def test_order_does_not_matter(method: str, samples: list[Array], random: Any) -> None:
    shuffled = list(samples)
    random.shuffle(shuffled)
    assert observed(method, shuffled) == observed(method, samples)


@every_method
@given(SAMPLES, SAMPLES)
def test_merging_equals_seeing_all(method: str, first: list[Array], second: list[Array]) -> None:
    left, right = METHODS[method](), METHODS[method]()
    for sample in first:
        left.update(sample)
    for sample in second:
        right.update(sample)
    left.merge(right)
    assert left.range() == observed(method, first + second)


@every_method
@given(SAMPLES)
def test_range_lies_inside_the_values(method: str, samples: list[Array]) -> None:
    low, high = observed(method, samples)
    values = np.concatenate(samples)
    assert float(values.min()) <= low <= high <= float(values.max())


@every_method
@pytest.mark.parametrize("value", [0.0, 3.5, -2.0])
def test_constant(method: str, value: float) -> None:
    assert observed(method, [np.full(5, value, np.float32)]) == (value, value)


@every_method
def test_empty_arrays_change_nothing(method: str) -> None:
    values = np.array([1.0, 2.0], np.float32)
    assert observed(method, [values, values[:0]]) == observed(method, [values])


@every_method
def test_nothing_seen_is_an_error(method: str) -> None:
    with pytest.raises(CalibrationError, match="saw no values"):
        METHODS[method]().range()


def test_minmax_keeps_the_outlier() -> None:
    assert observed("minmax", [np.array([0, 1, -1000], np.float32)]) == (-1000.0, 1.0)
