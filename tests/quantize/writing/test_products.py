"""A MatMul and its bias are written as one Gemm that computes the same; shapes around it stay."""

from __future__ import annotations

import numpy as np
import pytest

from hexqdq.import_.pipeline import import_model
from hexqdq.quantize.pipeline import quantize
from hexqdq.quantize.recipe import Recipe
from hexqdq.quantize.writing.products import ProductWriter
from tests.import_.models import outputs
from tests.quantize.graphs import both, model, ops, quantized, samples

MATRIX = "m (float[2,4] x) => (float[2,5] y) { h = MatMul(x, wm) y = Add(h, bm) }"
CUBE = "m (float[2,3,4] x) => (float[2,3,5] y) { h = MatMul(x, wm) y = Add(row, h) }"
FOLDED = "m (float[2,3,4] x) => (float[2,3,5] z) { h = MatMul(x, wm) a = Add(h, bm) y = Relu(a) z = Sigmoid(y) }"
SHARED = """m (float[2,3,4] x) => (float[2,3,5] y, float[2,3,5] z) {
    h = MatMul(x, wm) y = Add(h, bm) k = MatMul(x, wm) z = Add(k, bm)
}"""
TEXTS = {"matrix": MATRIX, "cube": CUBE, "folded": FOLDED, "shared": SHARED}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_the_float_model_computes_the_same(text: str) -> None:
    imported = import_model(model(text))
    feeds = samples(imported)[0]
    rewritten = imported.model.clone()
    assert ProductWriter(rewritten.graph, Recipe()).write() == text.count("MatMul")
    for found, wanted in zip(outputs(rewritten, feeds), outputs(model(text), feeds), strict=True):
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_the_quantized_model_is_near(text: str) -> None:
    exact, rough = both(text)
    for left, right in zip(exact, rough, strict=True):
        assert np.abs(left - right).max() < 0.03 * np.ptp(left)


def test_forms() -> None:
    assert ops(quantized(MATRIX)) == ["Gemm"]
    assert ops(quantized(CUBE)) == ["Reshape", "Gemm", "Reshape"]
    assert ops(quantized(FOLDED)) == ["Reshape", "Gemm", "Relu", "Reshape", "Sigmoid"]
    assert ops(quantized(SHARED)) == ["Reshape", "Gemm", "Reshape", "Gemm", "Reshape"]


def test_names_of_values_and_nodes_stay() -> None:
    qdq = quantized(FOLDED)
    names = {value.name for node in qdq.model.graph for value in node.outputs}
    assert {"y", "z"} <= names
    gemm = next(node for node in qdq.model.graph if node.op_type == "Gemm")
    assert gemm.name == "MatMul_h"
    assert qdq.origin["MatMul_h"] == ("MatMul_h", "Add_a")
    assert "Add_a" not in qdq.origin
    reshapes = [str(node.name) for node in qdq.model.graph if node.op_type == "Reshape"]
    assert [qdq.origin[name] for name in reshapes] == [("MatMul_h",), ("MatMul_h", "Add_a")]


def test_shapes_share_the_parameters_of_what_they_hold() -> None:
    imported = import_model(model(CUBE))
    qdq = quantize(imported, samples(imported), Recipe(method="minmax", bias_correct=False, smooth=False, mixed=False))
    assert set(qdq.ranges) == {"x", "y"}
    scales = [str(n.inputs[1].name) for n in qdq.model.graph if n.op_type == "QuantizeLinear" and n.inputs[1]]
    assert len(scales) == 4 and len(set(scales)) == 2


@pytest.mark.parametrize("kept", ["MatMul_h", "Add_y"])
def test_nodes_that_stay_float_stay_apart(kept: str) -> None:
    assert ops(quantized(MATRIX, Recipe(keep_float=(kept,)))) == ["MatMul", "Add"]
