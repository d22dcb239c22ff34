"""Planted difficulties: the report names each, and the default output is right."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest

from hexqdq.import_.pipeline import import_model
from hexqdq.quantize.findings import Finding, findings
from hexqdq.quantize.pipeline import already_quantized, quantize
from hexqdq.quantize.recipe import Recipe
from tests.import_.models import outputs
from tests.quantize import planted
from tests.quantize.graphs import constants
from tests.quantize.planted import Feeds

Planted = Callable[[], tuple[onnx.ModelProto, Feeds]]


def judged(make: Planted, recipe: Recipe | None = None) -> tuple[float, tuple[Finding, ...]]:
    """SQNR of the quantized model's output in dB, and what was found."""
    model, feeds = make()
    imported = import_model(model)
    qdq = quantize(imported, feeds, recipe)
    exact, rough = (np.stack([outputs(m, feed)[0] for feed in feeds]).astype(np.float64) for m in (model, qdq.model))
    ratio = float(10 * np.log10((exact**2).sum() / ((exact - rough) ** 2).sum()))
    return ratio, findings(imported, qdq)


@pytest.mark.parametrize(
    ("make", "kind", "where", "least"),
    [
        (planted.wide_tail, "wide tail", "x", 20.0),
        (planted.dead_channel, "dead channel", "Conv_a", 30.0),
        (planted.mask, "mask", "Add_h", 30.0),
        (lambda: planted.mask(-np.inf), "mask", "Add_h", 30.0),
        (planted.shared_bias, "shared bias", "b", 30.0),
        (planted.tied_weights, "tied weights", "w", 30.0),
        (planted.fixed_range, "fixed range", "Sigmoid", 30.0),
    ],
)
def test_the_report_names_it_and_the_output_is_right(make: Planted, kind: str, where: str, least: float) -> None:
    ratio, found = judged(make)
    assert (kind, where) in {(entry.kind, entry.where) for entry in found}
    assert ratio > least


@pytest.mark.parametrize("make", [planted.dead_channel, planted.shared_bias, planted.tied_weights])
def test_nothing_else_is_found(make: Planted) -> None:
    assert len({entry.kind for entry in judged(make)[1]}) == 1


def test_a_fixed_range_is_not_what_calibration_saw() -> None:
    model, feeds = planted.fixed_range()
    qdq = quantize(import_model(model), feeds)
    low, high = qdq.ranges["y"]
    assert high - low < 0.1
    assert 1 / 256 in [float(values) for values in constants(qdq).values() if values.size == 1]


def test_a_model_that_came_quantized_has_none() -> None:
    model, feeds = planted.shared_bias()
    imported = import_model(model)
    assert findings(imported, already_quantized(imported)) == ()
    assert len(feeds) == 16
