"""Bias correction takes out the mean error it says it does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hexqdq.errors import CalibrationError, QuantizationError
from hexqdq.import_.pipeline import import_model
from hexqdq.quantize.draft import Draft
from hexqdq.quantize.pipeline import assemble, quantize, values_to_calibrate
from hexqdq.quantize.recipe import Recipe
from hexqdq.quantize.repair.bias_correct import bias_correct
from tests.import_.models import outputs
from tests.quantize.graphs import constants, model, samples

Array = NDArray[Any]
CONV = "m (float[1,3,8,8] x) => (float[1,4,6,6] y) { y = Conv(x, w, b) }"
LINEAR = "m (float[2,4] x) => (float[2,5] y) { h = MatMul(x, wm) y = Add(h, bm) }"
BARE = "m (float[1,3,8,8] x) => (float[1,4,6,6] y) { y = Conv(x, w) }"
OFF = Recipe(bias_correct=False, smooth=False, mixed=False)


def shift(text: str, recipe: Recipe, axis: int) -> float:
    """The largest mean error of a channel over the samples, coarse steps made by a clipped range."""
    imported = import_model(model(text))
    feeds = [{"x": np.abs(sample["x"])} for sample in samples(imported, 16)]
    names = values_to_calibrate(imported, recipe)
    ranges = dict.fromkeys(names, (-30.0, 30.0)) | {"x": (0.0, 1.0)}
    qdq = quantize(imported, feeds, recipe, ranges=ranges)
    errors = [outputs(model(text), feed)[0] - outputs(qdq.model, feed)[0] for feed in feeds]
    others = tuple(index for index in range(errors[0].ndim) if index != axis)
    return float(np.abs(np.mean(errors, axis=0).mean(axis=others)).max())


@pytest.mark.parametrize(("text", "axis"), [(CONV, 1), (LINEAR, 1)])
def test_mean_error_vanishes(text: str, axis: int) -> None:
    assert shift(text, OFF, axis) > 0.1
    assert shift(text, Recipe(), axis) < 0.05


def test_correction_is_the_mean_error_of_the_contraction() -> None:
    imported = import_model(model(CONV))
    feeds = samples(imported, 4)
    ranges = {"x": (-1.0, 1.0), "y": (-9.0, 9.0)}
    (correction,) = bias_correct(Draft(imported, OFF, ranges), feeds).corrections.values()
    clipped = [{"x": np.clip(feed["x"], -1, 1)} for feed in feeds]
    exact = np.mean([outputs(model(CONV), feed)[0] for feed in feeds], axis=(0, 1, 3, 4))
    rough = np.mean([outputs(model(CONV), feed)[0] for feed in clipped], axis=(0, 1, 3, 4))
    np.testing.assert_allclose(correction, exact - rough, atol=0.02)


def test_only_biases_change() -> None:
    imported = import_model(model(CONV))
    plain, corrected = (constants(quantize(imported, samples(imported), recipe)) for recipe in (OFF, Recipe()))
    assert plain.keys() == corrected.keys()
    assert {name for name in plain if not np.array_equal(plain[name], corrected[name])} == {"Conv_y_bias_quantized"}


def test_no_bias_is_none_to_correct() -> None:
    imported = import_model(model(BARE))
    assert bias_correct(Draft(imported, OFF, {"x": (-1.0, 1.0), "y": (-9.0, 9.0)}), samples(imported)).corrections == {}


def test_a_stream_is_read_twice() -> None:
    imported = import_model(model(CONV))

    def stream() -> Iterator[dict[str, Array]]:
        yield from samples(imported)

    assert quantize(imported, stream()).digest == quantize(imported, samples(imported)).digest


def test_known_ranges_need_no_samples() -> None:
    imported = import_model(model(CONV))
    ranges = quantize(imported, samples(imported), OFF).ranges
    assert quantize(imported, None, OFF, ranges=ranges).digest == assemble(Draft(imported, OFF, ranges)).digest
    with pytest.raises(CalibrationError, match="smooth, bias_correct need samples"):
        quantize(imported, None, Recipe(mixed=False), ranges=ranges)
    with pytest.raises(CalibrationError, match="ranges need samples"):
        quantize(imported, None, OFF)
    with pytest.raises(QuantizationError, match="tensor 'y': has no range"):
        quantize(imported, None, OFF, ranges={"x": (0.0, 1.0)})
