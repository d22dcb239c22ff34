"""Batches of several, and tensors without elements, are calibrated by every method."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from hexqdq.errors import CalibrationError
from hexqdq.import_.pipeline import import_model
from hexqdq.quantize.calibration.calibrate import calibrate
from hexqdq.quantize.observers import METHODS
from hexqdq.quantize.pipeline import quantize
from hexqdq.quantize.recipe import Recipe
from tests.import_.models import outputs, parse
from tests.quantize.graphs import model, normal

IMAGES = "m (float[{0},3,4,4] x) => (float[{0},4,2,2] y) {{ h = Conv(x, w, b) y = Relu(h) }}"
EMPTY = """m (float[2,4] x) => (float[2,5] y, float[0,4] e) {
    h = Relu(x)
    e = Slice(h, zero, zero, zero)
    s = Sigmoid(e)
    a = Concat<axis = 0>(s, h)
    y = MatMul(a, w)
}"""


@pytest.mark.parametrize("method", METHODS)
def test_batches_are_as_their_samples(method: str) -> None:
    data = normal(12, 3, 4, 4, seed=7)
    knobs = Recipe(method=method).knobs()
    many, one = (import_model(model(IMAGES.format(batch))).model for batch in (4, 1))
    batched = calibrate(many, ("x", "y"), [{"x": data[at : at + 4]} for at in (0, 4, 8)], method, None, knobs)
    single = calibrate(one, ("x", "y"), [{"x": data[at : at + 1]} for at in range(12)], method, None, knobs)
    for name in ("x", "y"):
        if method != "average":  # a batch is one sample of it
            assert batched.narrow[name] == pytest.approx(single.narrow[name], rel=1e-3)
        assert batched.narrow[name][0] <= 0 < batched.narrow[name][1]


@pytest.mark.parametrize("method", METHODS)
def test_model_of_a_batch_is_quantized(method: str) -> None:
    source = model(IMAGES.format(4))
    feeds = [{"x": normal(4, 3, 4, 4, seed=seed)} for seed in range(4)]
    qdq = quantize(import_model(source), feeds, Recipe(method=method))
    (exact,), (found,) = outputs(source, feeds[0]), outputs(qdq.model, feeds[0])
    assert np.abs(found - exact).max() <= 0.2 * np.abs(exact).max()


@pytest.mark.parametrize("method", METHODS)
def test_tensors_without_elements(method: str) -> None:
    source = parse(EMPTY, zero=np.array([0], np.int64), w=normal(4, 5, seed=1))
    feeds = [{"x": normal(2, 4, seed=seed)} for seed in range(4)]
    qdq = quantize(import_model(source), feeds, Recipe(method=method))
    (exact, _), (found, empty) = outputs(source, feeds[0]), outputs(qdq.model, feeds[0])
    assert empty.shape == (0, 4)
    assert np.abs(found - exact).max() <= 0.2 * np.abs(exact).max()


def drawn(batches: list[dict[str, np.ndarray[Any, Any]]]) -> Iterator[dict[str, np.ndarray[Any, Any]]]:
    yield from batches


@pytest.mark.parametrize("streamed", [False, True])
def test_larger_batches_are_taken_apart(streamed: bool) -> None:
    data = normal(12, 3, 4, 4, seed=7)
    imported = import_model(model(IMAGES.format(2)))
    batches = [{"x": data[:8]}, {"x": data[8:]}]
    told: list[tuple[str, int, int]] = []
    recipe = Recipe(method="minmax", mixed=False)
    found = quantize(imported, drawn(batches) if streamed else batches, recipe, lambda *one: told.append(one))
    expected = quantize(imported, [{"x": data[at : at + 2]} for at in range(0, 12, 2)], recipe)
    assert found.digest == expected.digest
    assert [done for what, done, _ in told if what == "calibrate"][:6] == [1, 2, 3, 4, 5, 6]


def test_batch_that_does_not_divide_is_told() -> None:
    imported = import_model(model(IMAGES.format(2)))
    with pytest.raises(CalibrationError, match=r"has float32 \(3, 3, 4, 4\) for input 'x'"):
        quantize(imported, [{"x": normal(3, 3, 4, 4)}])
