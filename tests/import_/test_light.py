"""Weights are neither copied nor lost where only the structure of a model is read."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest

from hexqdq.import_ import read
from hexqdq.import_.light import light_proto, with_weights
from hexqdq.import_.pipeline import import_model
from hexqdq.import_.product import model_digest
from tests.import_.models import outputs, parse, weighted_model

TEXT = "m (float[2,300] x) => (float[2,300] y) { h = MatMul(x, w) y = Relu(h) }"
WEIGHTS = np.random.default_rng(0).normal(size=(300, 300)).astype(np.float32)


@pytest.mark.parametrize("most_bytes", [0, 1 << 30])
def test_light_proto_and_back(most_bytes: int) -> None:
    model = ir.from_proto(weighted_model())
    before = ir.to_proto(model).SerializeToString(deterministic=True)
    light = light_proto(model, most_bytes)
    assert [tensor.name for tensor in light.graph.initializer] == ([] if most_bytes == 0 else ["w"])
    assert [value.name for value in light.graph.input] == (["x", "w"] if most_bytes == 0 else ["x"])
    assert ir.to_proto(model).SerializeToString(deterministic=True) == before
    again = with_weights(ir.from_proto(light), model, most_bytes)
    assert model_digest(again) == model_digest(model)


def test_upgrade_keeps_large_weights() -> None:
    source = parse(TEXT, opset=11, w=WEIGHTS)
    imported = import_model(source)
    assert imported.model.graph.opset_imports[""] == 17
    assert [value.name for value in imported.model.graph.inputs] == ["x"]
    feeds = {"x": np.ones((2, 300), np.float32)}
    np.testing.assert_array_equal(outputs(imported.model, feeds)[0], outputs(source, feeds)[0])


def test_large_external_data_stay_in_their_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(parse(TEXT, w=WEIGHTS), path, save_as_external_data=True, location="m.data", size_threshold=0)
    copied = import_model(path)
    monkeypatch.setattr(read, "_COPIED_BYTES", WEIGHTS.nbytes - 1)
    mapped = import_model(path)
    assert isinstance(mapped.model.graph.initializers["w"].const_value, ir.ExternalTensor)
    assert not isinstance(copied.model.graph.initializers["w"].const_value, ir.ExternalTensor)
    assert mapped.digest == copied.digest == import_model(parse(TEXT, w=WEIGHTS)).digest


@pytest.mark.parametrize(
    "values",
    [
        np.arange(7, dtype=np.float32),
        np.arange(6, dtype=np.float16).reshape(2, 3).T,
        np.arange(-4, 4, dtype=np.int64),
        np.array(3, np.int32),
        np.array([True, False]),
        np.arange(4).astype(ml_dtypes.bfloat16),
        np.arange(-2, 3).astype(ml_dtypes.int4),
    ],
    ids=lambda values: values.dtype.name,
)
def test_digest_is_of_the_stored_bytes(values: np.ndarray[Any, Any]) -> None:
    tensor = ir.tensor(values, name="c")
    value = ir.Value(name="c", type=ir.TensorType(tensor.dtype), shape=ir.Shape(values.shape), const_value=tensor)
    model = ir.Model(ir.Graph([], [], nodes=[], initializers=[value], opset_imports={"": 21}), ir_version=10)
    expected = hashlib.sha256(repr([("", 21)]).encode() + f"c|{tensor.dtype}|{tensor.shape}\n".encode())
    expected.update(tensor.tobytes())
    assert model_digest(model) == expected.hexdigest()
