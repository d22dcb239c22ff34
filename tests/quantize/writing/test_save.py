"""Models are written whole, weights beside them where they are large or it is asked for."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx_ir as ir
import pytest

from hexqdq import passes
from hexqdq.errors import UsageError
from hexqdq.import_.pipeline import import_model
from hexqdq.passes import dump_model, weight_bytes
from hexqdq.quantize.pipeline import quantize
from hexqdq.quantize.product import QdqModel
from hexqdq.quantize.recipe import Recipe
from hexqdq.quantize.writing import save as saving
from hexqdq.quantize.writing.save import save
from tests.import_.models import parse
from tests.quantize.graphs import normal, samples

TEXT = "m (float[2,64] x) => (float[2,64] y) { h = MatMul(x, w) y = Relu(h) }"


def made(seed: int = 0) -> QdqModel:
    imported = import_model(parse(TEXT, w=normal(64, 64, seed=seed)))
    return quantize(imported, samples(imported), Recipe(mixed=False))


@pytest.fixture
def qdq() -> QdqModel:
    return made()


def data_of(path: Path) -> list[str]:
    """The files that the model at ``path`` names."""
    model = onnx.load(path, load_external_data=False)
    return sorted(
        {entry.value for t in model.graph.initializer for entry in t.external_data if entry.key == "location"}
    )


def test_external_data_lie_beside_the_model(qdq: QdqModel, tmp_path: Path) -> None:
    path = save(qdq, tmp_path / "m.onnx", external=True)
    name = f"m.onnx.{qdq.digest[:12]}.data"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["m.onnx", name]
    assert data_of(path) == [name]
    assert import_model(path).digest == qdq.digest
    assert not isinstance(qdq.model.graph.initializers["MatMul_h_weight_quantized"].const_value, ir.ExternalTensor)


def test_large_weights_are_external(qdq: QdqModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saving, "INLINE_BYTES", weight_bytes(qdq.model) - 1)
    assert data_of(save(qdq, tmp_path / "m.onnx")) == [f"m.onnx.{qdq.digest[:12]}.data"]
    monkeypatch.setattr(saving, "INLINE_BYTES", weight_bytes(qdq.model))
    assert data_of(save(qdq, tmp_path / "m.onnx")) == []
    assert [file.name for file in tmp_path.iterdir()] == ["m.onnx"]


def test_large_dumps_are_external(qdq: QdqModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "INLINE_BYTES", weight_bytes(qdq.model) - 1)
    dump_model(qdq.model, tmp_path / "01.onnx")
    assert data_of(tmp_path / "01.onnx") == ["01.onnx.data"]


def test_a_reader_never_finds_a_model_with_data_of_another(
    qdq: QdqModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped between the two files, the old model still reads its own data."""
    path = save(qdq, tmp_path / "m.onnx", external=True)
    kept = tmp_path / "m.onnx.data"
    kept.write_bytes(b"of somebody else")
    replace = Path.replace

    def fail(self: Path, target: Path) -> Path:
        if self.name == "m.onnx":
            raise OSError("power cut")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", fail)
    newer = made(seed=30)
    with pytest.raises(UsageError, match="power cut"):
        save(newer, path, external=True)
    assert import_model(path).digest == qdq.digest
    monkeypatch.undo()
    save(newer, path, external=True)
    assert import_model(path).digest == newer.digest != qdq.digest
    assert {file.name for file in tmp_path.iterdir()} == {"m.onnx", f"m.onnx.{newer.digest[:12]}.data", "m.onnx.data"}


def test_same_bytes_twice(tmp_path: Path) -> None:
    first, second = (save(made(), tmp_path / name / "m.onnx", external=True) for name in "ab")
    assert first.read_bytes() == second.read_bytes()
    assert (first.parent / data_of(first)[0]).read_bytes() == (second.parent / data_of(second)[0]).read_bytes()
