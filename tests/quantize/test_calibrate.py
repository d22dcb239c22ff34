"""Calibration streams its samples and names what is wrong with them."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from numpy.typing import NDArray

from hexqdq.errors import CalibrationError, UsageError
from hexqdq.import_.pipeline import import_model
from hexqdq.quantize.calibration.calibrate import calibrate
from hexqdq.quantize.pipeline import quantize
from hexqdq.quantize.recipe import Recipe
from hexqdq.quantize.writing.save import save
from tests.quantize.graphs import model, samples
from tests.quantize.test_graphs import GRAPHS

TEXT = "m (float[2,4] x) => (float[2,5] y) { h = MatMul(x, wm) y = Relu(h) }"


def fill(value: float) -> dict[str, NDArray[Any]]:
    return {"x": np.full((2, 4), value, np.float32)}


def test_ranges_are_those_of_onnxruntime() -> None:
    imported = import_model(model(TEXT))
    ranges = calibrate(imported.model, ("x", "y"), [fill(1.0), fill(-2.0)], "minmax").narrow
    assert ranges["x"] == (-2.0, 1.0)
    assert ranges["y"][0] == 0.0


@pytest.mark.parametrize(
    "sample, subject, problem",
    [
        (fill(np.nan), "tensor 'x'", "holds NaN in calibration sample 1"),
        (fill(np.inf), "tensor 'x'", "holds infinity in calibration sample 1"),
        (fill(3e38), "tensor 'y'", "in calibration sample 1"),
        ({}, "calibration sample 1", "lacks input 'x'"),
        ({**fill(0), "z": np.zeros(1)}, "calibration sample 1", "has 'z', which is no input; expected x"),
        ({"x": np.zeros((3, 4), np.float32)}, "calibration sample 1", "float32 (3, 4) for input 'x'"),
        ({"x": np.zeros((2, 4))}, "calibration sample 1", "has float64 (2, 4) for input 'x'"),
    ],
)
def test_bad_sample_is_named(sample: dict[str, NDArray[Any]], subject: str, problem: str) -> None:
    imported = import_model(model(TEXT))
    with pytest.raises(CalibrationError) as caught:
        quantize(imported, [fill(1.0), sample])
    assert caught.value.subject == subject
    assert problem in caught.value.problem


def test_no_samples() -> None:
    with pytest.raises(CalibrationError, match="there are no samples"):
        quantize(import_model(model(TEXT)), [])


def test_samples_are_freed_one_by_one() -> None:
    alive: list[weakref.ref[NDArray[Any]]] = []

    def stream() -> Iterator[dict[str, NDArray[Any]]]:
        for index in range(5):
            assert sum(ref() is not None for ref in alive) <= 1
            array = np.full((2, 4), index, np.float32)
            alive.append(weakref.ref(array))
            yield {"x": array}
            del array

    quantize(import_model(model(TEXT)), stream())
    assert len(alive) == 5


def test_progress_counts_samples() -> None:
    seen: list[tuple[str, int, int]] = []
    imported = import_model(model(TEXT))
    quantize(imported, samples(imported, 3), Recipe(bias_correct=False, smooth=False), lambda *told: seen.append(told))
    assert seen == [("calibrate", 1, 3), ("calibrate", 2, 3), ("calibrate", 3, 3)]


def test_saved_model_is_the_product(tmp_path: Path) -> None:
    imported = import_model(model(GRAPHS["residual"]))
    qdq = quantize(imported, samples(imported))
    path = save(qdq, tmp_path / "new" / "m.onnx")
    assert [file.name for file in path.parent.iterdir()] == ["m.onnx"]
    assert import_model(path).digest == qdq.digest
    ir.load(path)


def test_failed_save_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    imported = import_model(model(TEXT))
    qdq = quantize(imported, samples(imported))
    path = save(qdq, tmp_path / "m.onnx")
    before = path.read_bytes()

    def fail(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(ir, "save", fail)
    with pytest.raises(UsageError, match="cannot be written: disk full"):
        save(qdq, path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["m.onnx"]
    with pytest.raises(UsageError, match="is a folder"):
        save(qdq, tmp_path)


def test_model_that_fails_on_a_sample_is_told() -> None:
    text = "m (float[2,4] x, int64[1] i) => (float[1,4] y) { h = Relu(x) y = Gather<axis = 0>(h, i) }"
    feeds: dict[str, NDArray[Any]] = {"x": np.ones((2, 4), np.float32), "i": np.array([7], np.int64)}
    with pytest.raises(CalibrationError, match=r"fails in onnxruntime: .*out of"):
        quantize(import_model(model(text)), [feeds])
