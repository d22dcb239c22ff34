"""Options of ``hexqdq quantize``: methods, knobs, saved ranges."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.cli.test_cli import run
from tests.quantize import planted

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def digits(root: Path) -> Path:
    return root / "models" / "digits"


def quantized(digits: Path, path: Path, *options: object, calibrated: bool = True) -> bytes:
    """The file that the command writes."""
    data = ("--calib", digits / "digits_calib.npz") if calibrated else ()
    assert run("quantize", digits / "digits.onnx", *data, "-o", path, "-q", *options) == 0
    return path.read_bytes()


def test_methods_and_knobs_are_options(digits: Path, tmp_path: Path) -> None:
    methods = ("minmax", "average", "percentile", "entropy", "mse")
    made = {method: quantized(digits, tmp_path / f"{method}.onnx", "--method", method) for method in methods}
    assert len(set(made.values())) == len(methods)
    assert quantized(digits, tmp_path / "default.onnx") == made["mse"]
    for options in (("--mse-power", "4"), ("--no-bias-correct",)):
        assert quantized(digits, tmp_path / "knob.onnx", *options) != made["mse"]
    for options in (("--percentile", "90"), ("--histogram-bins", "512")):
        assert quantized(digits, tmp_path / "knob.onnx", "--method", "percentile", *options) != made["percentile"]


def test_options_stand_above_the_recipe(digits: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.json"
    recipe.write_text(json.dumps({"method": "percentile", "per_channel": False}))
    ranges = tmp_path / "ranges.json"
    quantized(digits, tmp_path / "m.onnx", "--recipe", recipe, "--percentile", 99, "--ranges", ranges)
    saved = json.loads(ranges.read_text())
    assert (saved["method"], saved["knobs"]["percentile"]) == ("percentile", 99)


@pytest.mark.parametrize(
    "options, said", [(("--method", "median"), "expected one of minmax, average"), (("--percentile", 200), "50 to 100")]
)
def test_wrong_choice(digits: Path, options: tuple[object, ...], said: str, capsys: Captured) -> None:
    assert run("quantize", digits / "digits.onnx", "--calib", digits / "digits_calib.npz", *options) == 2
    assert said in capsys.readouterr().err


def test_saved_ranges_need_no_samples(digits: Path, tmp_path: Path) -> None:
    ranges, plain = tmp_path / "sub" / "ranges.json", ("--no-bias-correct", "--no-smooth", "--no-mixed")
    first = quantized(digits, tmp_path / "a.onnx", *plain, "--ranges", ranges)
    before = ranges.read_bytes()
    assert quantized(digits, tmp_path / "b.onnx", *plain, "--ranges", ranges, calibrated=False) == first
    assert quantized(digits, tmp_path / "c.onnx", "--ranges", ranges) == quantized(digits, tmp_path / "d.onnx")
    assert ranges.read_bytes() == before


def test_saved_ranges_are_of_no_element_type(digits: Path, tmp_path: Path) -> None:
    ranges, recipe = tmp_path / "ranges.json", tmp_path / "recipe.json"
    recipe.write_text(json.dumps({"activations": "u16", "bias_correct": False, "smooth": False}))
    quantized(digits, tmp_path / "narrow.onnx", "--no-bias-correct", "--no-smooth", "--ranges", ranges)
    wide = quantized(digits, tmp_path / "wide.onnx", "--recipe", recipe)
    assert quantized(digits, tmp_path / "a.onnx", "--recipe", recipe, "--ranges", ranges, calibrated=False) == wide


def test_ranges_of_something_else_are_an_error(digits: Path, tmp_path: Path, capsys: Captured) -> None:
    ranges = tmp_path / "ranges.json"
    quantized(digits, tmp_path / "a.onnx", "--ranges", ranges)
    arguments = ("--calib", digits / "digits_calib.npz", "--ranges", ranges, "-o", tmp_path / "b.onnx")
    other = onnx.load(digits / "digits.onnx")
    weights = max(other.graph.initializer, key=lambda tensor: len(tensor.raw_data))
    weights.raw_data = weights.raw_data[::-1]
    onnx.save(other, tmp_path / "other.onnx")
    assert run("quantize", tmp_path / "other.onnx", *arguments) == 1
    assert "are of model" in capsys.readouterr().err
    assert run("quantize", digits / "digits.onnx", *arguments, "--method", "minmax") == 1
    assert "were found by mse" in capsys.readouterr().err
    ranges.write_text("[]")
    assert run("quantize", digits / "digits.onnx", *arguments) == 1
    assert "cannot be read" in capsys.readouterr().err


def test_external_data(digits: Path, tmp_path: Path) -> None:
    inside = quantized(digits, tmp_path / "a.onnx")
    beside = quantized(digits, tmp_path / "b.onnx", "--external-data")
    (data,) = tmp_path.glob("b.onnx.*.data")
    assert len(beside) < len(inside) and data.stat().st_size > 10_000


def test_neither_samples_nor_ranges(digits: Path, tmp_path: Path, capsys: Captured) -> None:
    assert run("quantize", digits / "digits.onnx", "--ranges", tmp_path / "none.json") == 2
    assert "--calib: is missing" in capsys.readouterr().err


def test_compare_prints_tensors(digits: Path, tmp_path: Path, capsys: Captured) -> None:
    qdq = tmp_path / "qdq.onnx"
    quantized(digits, qdq)
    arguments = ("compare", digits / "digits.onnx", qdq, "--data", digits / "digits_calib.npz")
    assert run(*arguments) == 0
    assert "tensors are below 20 dB" in capsys.readouterr().out
    assert run(*arguments, "--json", "--good", 60) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["first_bad"] == shown["tensors"][0]["tensor"]


def test_what_is_hard_is_told(tmp_path: Path, capsys: Captured) -> None:
    model, feeds = planted.shared_bias()
    onnx.save(model, tmp_path / "m.onnx")
    np.savez(tmp_path / "c.npz", x=np.concatenate([feed["x"] for feed in feeds]))
    arguments = ("quantize", tmp_path / "m.onnx", "--calib", tmp_path / "c.npz", "-o", tmp_path / "q.onnx")
    assert run(*arguments) == 0
    assert "shared bias  b      is added by Conv_a, Conv_c" in capsys.readouterr().out
    assert run(*arguments, "--json") == 0
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert (finding["kind"], finding["where"]) == ("shared bias", "b")
