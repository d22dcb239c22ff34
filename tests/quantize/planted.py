"""Models with one difficulty each, and samples of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from tests.import_.models import parse

Array = NDArray[Any]
Feeds = list[dict[str, Array]]


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> Array:
    return (scale * np.random.default_rng(seed).normal(size=shape)).astype(np.float32)


def feeds(*shape: int, count: int = 16) -> Feeds:
    return [{"x": normal(*shape, seed=100 + seed)} for seed in range(count)]


def wide_tail() -> tuple[onnx.ModelProto, Feeds]:
    """One value of two million is 60 times as large as the others: no 8 bits hold both."""
    text = "m (float[1,8,128,128] x) => (float[1,8,128,128] y) { a = Conv(x, w) y = Relu(a) }"
    given = feeds(1, 8, 128, 128)
    given[0]["x"][0, 0, 0, 0] = 60.0
    return parse(text, w=normal(8, 8, 1, 1, seed=1, scale=0.3)), given


def dead_channel() -> tuple[onnx.ModelProto, Feeds]:
    """A channel's weights are 1e-12: BatchNormalization left it behind."""
    text = "m (float[1,8,16,16] x) => (float[1,6,16,16] y) { a = Conv(x, w, b) r = Relu(a) y = Conv(r, v) }"
    weights = normal(8, 8, 1, 1, seed=1, scale=0.3)
    weights[3] *= 1e-12
    constants: dict[str, Any] = {"w": weights, "b": normal(8, seed=2), "v": normal(6, 8, 1, 1, seed=3)}
    return parse(text, **constants), feeds(1, 8, 16, 16)


def mask(least: float = -1e9) -> tuple[onnx.ModelProto, Feeds]:
    """Causal attention: a constant is added that hides what comes later."""
    text = """m (float[1,16,8] x) => (float[1,16,8] y) {
        k = Transpose <perm = [0, 2, 1]> (x) s = MatMul(x, k) h = Add(s, hidden) p = Softmax(h) y = MatMul(p, x)
    }"""
    hidden = np.triu(np.full((16, 16), least, np.float32), 1)
    return parse(text, hidden=hidden), feeds(1, 16, 8)


def shared_bias() -> tuple[onnx.ModelProto, Feeds]:
    """Two convolutions of very different weights add the same bias."""
    text = """m (float[1,8,16,16] x) => (float[1,8,16,16] y) {
        a = Conv(x, w, b) c = Conv(x, v, b) d = Add(a, c) y = Relu(d)
    }"""
    constants: dict[str, Any] = {
        "w": normal(8, 8, 1, 1, seed=1),
        "v": normal(8, 8, 1, 1, seed=2, scale=0.01),
        "b": normal(8, seed=3),
    }
    return parse(text, **constants), feeds(1, 8, 16, 16)


def tied_weights() -> tuple[onnx.ModelProto, Feeds]:
    """One matrix is read by two products of inputs that differ in size."""
    text = """m (float[4,16] x) => (float[4,16] y) {
        a = MatMul(x, w) r = Relu(a) s = Mul(r, tenth) y = MatMul(s, w)
    }"""
    return parse(text, w=normal(16, 16, seed=1, scale=0.3), tenth=np.array(0.1, np.float32)), feeds(4, 16)


def fixed_range() -> tuple[onnx.ModelProto, Feeds]:
    """Calibration sees the middle of a Sigmoid only; what is scored later reaches its ends."""
    text = "m (float[1,8,16,16] x) => (float[1,8,16,16] y) { a = Conv(x, w) y = Sigmoid(a) }"
    given = [{"x": 0.01 * feed["x"]} for feed in feeds(1, 8, 16, 16)]
    return parse(text, w=normal(8, 8, 1, 1, seed=1, scale=0.3)), given
