"""``hexqdq compare``: text, JSON and the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hexqdq.app.compare import page
from tests.cli.test_cli import Captured, run


@pytest.fixture(scope="module")
def models(root: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    digits = root / "models" / "digits"
    qdq = tmp_path_factory.mktemp("compare") / "d.qdq.onnx"
    assert run("quantize", digits / "digits.onnx", "--calib", digits / "digits_calib.npz", "-o", qdq, "-q") == 0
    return digits / "digits.onnx", qdq, digits / "digits_calib.npz"


def test_page_is_written_beside_the_table(models: tuple[Path, ...], tmp_path: Path, capsys: Captured) -> None:
    exact, qdq, data = models
    written = tmp_path / "new" / "report.html"
    assert run("compare", exact, qdq, "--data", data, "--html", written) == 0
    told = capsys.readouterr()
    assert f"wrote {written}" in told.out and "introduced dB" in told.out
    assert "histograms: 96" in told.err
    text = written.read_text(encoding="utf-8")
    assert "d.qdq.onnx against digits.onnx" in text and text.count("<svg") == 9
    assert run("compare", exact, qdq, "--data", data, "--html", tmp_path / "again.html", "-q") == 0
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == text


def test_json_says_what_is_inherited(models: tuple[Path, ...], capsys: Captured) -> None:
    exact, qdq, data = models
    assert run("compare", exact, qdq, "--data", data, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert {"introduced", "inherited", "cause", "types", "reach"} <= set(found["tensors"][0])
    assert found["first_bad"] is None


def test_what_the_page_needs_is_told_first(
    models: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr(page, "find_spec", lambda name: None)
    assert run("compare", "missing.onnx", models[1], "--data", models[2], "--html", "x.html") == 2
    assert "hexqdq[report]" in capsys.readouterr().err
