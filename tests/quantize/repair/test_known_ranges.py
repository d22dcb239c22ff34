"""Saved ranges and passes that scale values: whose ranges a file knows, and whose it cannot."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from hexqdq.app.convert import quantize_to_file
from hexqdq.errors import QuantizationError
from hexqdq.import_.pipeline import import_model
from hexqdq.qtypes import QType
from hexqdq.quantize.calibration.ranges import Ranges
from hexqdq.quantize.pipeline import quantize
from hexqdq.quantize.recipe import Recipe
from hexqdq.quantize.scaled import marked
from tests.quantize.repair.test_seams import PLAIN, built, conv_text, feeds

SMOOTH = Recipe(mixed=False)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model in which smooth scales ``a`` and ``b``."""
    path = tmp_path / "m.onnx"
    onnx.save(built(conv_text("Relu(a)")), path)
    return path


def saved(model: Path, ranges: Path, recipe: Recipe) -> bytes:
    """The file that a quantization with saved ranges writes."""
    samples, output = model.with_suffix(".npz"), model.with_suffix(".qdq.onnx")
    np.savez(samples, x=np.stack([feed["x"] for feed in feeds(onnx.load(model))]))
    quantize_to_file(model, samples, output, recipe=recipe, ranges=ranges)
    return output.read_bytes()


def test_scaled_values_are_calibrated_again(model: Path) -> None:
    imported, samples = import_model(str(model)), feeds(onnx.load(model))
    fresh, plain = (quantize(imported, samples, recipe) for recipe in (SMOOTH, PLAIN))
    assert fresh.ranges != plain.ranges
    known = Ranges(plain.ranges, plain.wide_ranges)
    assert quantize(imported, samples, SMOOTH, ranges=known).digest == fresh.digest


def test_known_ranges_of_other_values_are_taken(model: Path) -> None:
    imported, samples = import_model(str(model)), feeds(onnx.load(model))
    known = dict.fromkeys(quantize(imported, samples, SMOOTH).ranges, (-7.0, 7.0))
    found = quantize(imported, samples, SMOOTH, ranges=known)
    assert found.ranges["x"] == found.ranges["y"] == (-7.0, 7.0) != found.ranges["b"]


def test_a_file_does_not_hold_what_was_scaled(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "ranges.json"
    first = saved(model, path, SMOOTH)
    scaled = marked(quantize(import_model(str(model)), feeds(onnx.load(model)), SMOOTH).model)
    assert "b" in scaled
    assert scaled.isdisjoint(json.loads(path.read_text())["ranges"]["narrow"])
    assert saved(model, path, SMOOTH) == first
    with pytest.raises(QuantizationError, match="has no range"):
        saved(model, path, PLAIN)


def test_a_file_serves_types_that_are_scaled_otherwise(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "ranges.json"
    saved(model, path, SMOOTH)
    wide = Recipe(mixed=False, activations=QType.U16)
    assert saved(model, path, wide) == saved(model, tmp_path / "new.json", wide)
