"""Stages as data: their order, their dumps, where they may start and stop."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from hexqdq import driver
from hexqdq.app.calibration.source import open_calibration
from hexqdq.app.convert import signature
from hexqdq.errors import ModelError, UsageError
from hexqdq.import_.product import ImportedModel


@pytest.fixture
def digits(root: Path) -> Path:
    return root / "models" / "digits"


def calibrated(digits: Path, **options: object) -> driver.Options:
    def feeds(imported: ImportedModel) -> Iterable[driver.Feed]:
        return open_calibration(digits / "digits_calib.npz", signature(imported))

    return driver.Options(calibration=feeds, **options)  # type: ignore[arg-type]


def test_stages_have_names_of_their_own() -> None:
    names = [stage.name for stage in driver.STAGES]
    assert names == ["import", "quantize", "partition", "tosa", "linalg", "scheduled", "objects", "context"]


def test_stages_stop_where_told_and_are_timed(digits: Path) -> None:
    told: list[tuple[str, int, int]] = []
    outcome = driver.run_stages(
        digits / "digits.onnx", calibrated(digits, progress=lambda *tell: told.append(tell)), last="quantize"
    )
    assert list(outcome.products) == ["import", "quantize"]
    assert [measure.name for measure in outcome.measures] == ["import time", "quantize time"]
    assert told[:2] == [("import", 0, 1), ("import", 1, 1)] and told[-1] == ("quantize", 1, 1)
    assert ("calibrate", 96, 96) in told


def test_stages_resume_from_a_product(digits: Path) -> None:
    options = calibrated(digits)
    imported = driver.run_stages(digits / "digits.onnx", options, last="import").products["import"]
    resumed = driver.run_stages(imported, options, first="quantize", last="quantize").products["quantize"]
    whole = driver.run_stages(digits / "digits.onnx", options, last="quantize").products["quantize"]
    assert resumed.digest == whole.digest


@pytest.mark.parametrize(("first", "last"), [("nothing", "context"), ("import", "nothing"), ("quantize", "import")])
def test_unknown_stages_are_named(first: str, last: str) -> None:
    with pytest.raises(UsageError, match="expected one of"):
        driver.run_stages("model.onnx", driver.Options(), first, last)


def test_a_float_model_without_calibration_is_refused_or_stays_float(digits: Path) -> None:
    with pytest.raises(ModelError, match="hexqdq quantize"):
        driver.run_stages(digits / "digits.onnx", driver.Options(), last="quantize")
    kept = driver.run_stages(digits / "digits.onnx", driver.Options(allow_float=True), last="quantize")
    assert kept.products["quantize"].digest == kept.products["import"].digest


def test_a_made_up_feed_fits_the_model(digits: Path) -> None:
    imported = driver.run_stages(digits / "digits.onnx", driver.Options(), last="import").products["import"]
    (feed,) = driver.made_up_feed(imported)
    assert {name: (array.shape, array.dtype.name) for name, array in feed.items()} == {
        "image": ((1, 1, 8, 8), "float32")
    }
