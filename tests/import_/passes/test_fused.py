"""Ops of onnxruntime's own domain become the ONNX ops that they stand for, with the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from hexqdq.import_.pipeline import import_model
from tests.import_.models import outputs, parse

Array = NDArray[Any]
HEAD = '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>'


def normal(*shape: int, seed: int) -> Array:
    return np.random.default_rng(seed).normal(0.5, 1, shape).astype(np.float32)


CONSTANTS = {"g": normal(8, seed=1), "b": normal(8, seed=2), "c": normal(8, seed=3)}
FUSED = {
    "gelu": ("y = com.microsoft.Gelu(x)", ["Gelu"]),
    "bias_gelu": ("y = com.microsoft.BiasGelu(x, b)", ["Add", "Gelu"]),
    "fast_gelu": ("y = com.microsoft.FastGelu(x)", ["Gelu"]),
    "fast_gelu_of_sum": ("y = com.microsoft.FastGelu(x, b)", ["Add", "Gelu"]),
    "quick_gelu": ("r = Relu(x) y = com.microsoft.QuickGelu <alpha = 1.702> (r)", ["Relu", "QuickGelu"]),
    "rms_norm": ("y = SimplifiedLayerNormalization <axis = -1, epsilon = 0.001> (x, g)", ["RMSNormalization"]),
    "skip": (
        "r = Relu(x) y = com.microsoft.SkipLayerNormalization <epsilon = 0.01> (x, r, g, b)",
        ["Relu", "Add", "LayerNormalization"],
    ),
    "skip_with_bias_and_sum": (
        "r = Relu(x) n, , , s = com.microsoft.SkipLayerNormalization (x, r, g, b, c) y = Mul(n, s)",
        ["Relu", "Add", "Add", "LayerNormalization", "Mul"],
    ),
    "skip_rms": (
        "r = Relu(x) n, , , s = com.microsoft.SkipSimplifiedLayerNormalization (x, r, g) y = Mul(n, s)",
        ["Relu", "Add", "RMSNormalization", "Mul"],
    ),
}


def model(name: str) -> onnx.ModelProto:
    made = parse("m (float[2,6,8] x) => (float[2,6,8] y) { y = Relu(x) }", 17, **CONSTANTS)
    text = onnx.parser.parse_model(f"{HEAD}\nm (float[2,6,8] x) => (float[2,6,8] y) {{ {FUSED[name][0]} }}")
    text.graph.initializer.extend(made.graph.initializer)
    return text


@pytest.mark.parametrize("name", FUSED)
def test_numbers_stay(name: str) -> None:
    proto = model(name)
    imported = import_model(proto)
    assert [node.op_type for node in imported.model.graph] == FUSED[name][1]
    feeds = {"x": normal(2, 6, 8, seed=5)}
    (exact,), (found,) = outputs(proto, feeds), outputs(imported.model, feeds)
    assert np.abs(exact - found).max() <= 2e-6 * np.abs(exact).max()


def test_every_node_names_the_op_that_it_came_from() -> None:
    proto = model("skip_with_bias_and_sum")
    proto.graph.node[1].name = "norm"
    origin = import_model(proto).origin
    assert list(origin.values())[1:4] == [("norm",)] * 3
