"""Readers and models as users of onnxruntime.quantization have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray

from hexqdq.app.quantization import CalibrationDataReader
from tests.import_.models import parse

Array = NDArray[Any]

NETWORK = """m (float[N,3,16,16] image) => (float[N,5] scores) {
    c1 = Conv <pads = [1, 1, 1, 1]> (image, w1, b1)
    bn = BatchNormalization (c1, gamma, beta, mean, var)
    r1 = Relu (bn)
    p1 = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (r1)
    c2 = Conv <pads = [1, 1, 1, 1]> (p1, w2)
    s2 = Sigmoid (c2)
    m2 = Mul (c2, s2)
    g = GlobalAveragePool (m2)
    f = Flatten (g)
    h = MatMul (f, w3)
    scores = Add (h, b3)
}"""


def network() -> onnx.ModelProto:
    """A small CNN of dynamic batch; nodes are named after their results."""
    rng = np.random.default_rng(0)

    def normal(*shape: int, scale: float = 1.0) -> Array:
        return (scale * rng.normal(size=shape)).astype(np.float32)

    made = parse(
        NETWORK,
        w1=normal(8, 3, 3, 3, scale=0.2),
        b1=normal(8),
        gamma=np.abs(normal(8)) + 0.5,
        beta=normal(8),
        mean=normal(8),
        var=np.abs(normal(8)) + 0.5,
        w2=normal(16, 8, 3, 3, scale=0.15),
        w3=normal(16, 5),
        b3=normal(5),
    )
    for node in made.graph.node:
        node.name = f"{node.op_type}_{node.output[0]}"
    return made


def images(count: int, seed: int = 0, batch: int = 1) -> list[dict[str, Array]]:
    rng = np.random.default_rng(seed)
    return [{"image": rng.normal(size=(batch, 3, 16, 16)).astype(np.float32)} for _ in range(count)]


class Reader(CalibrationDataReader):
    """What the examples of onnxruntime write: a class with get_next and rewind."""

    def __init__(self, feeds: list[dict[str, Array]]) -> None:
        self.feeds = feeds
        self.rewind()

    def get_next(self) -> dict[str, Any] | None:
        return next(self.enumerated, None)

    def rewind(self) -> None:
        self.enumerated = iter(self.feeds)


def run(model: onnx.ModelProto | Path, feeds: list[dict[str, Array]]) -> Array:
    """The first output over all feeds."""
    source = str(model) if isinstance(model, Path) else model.SerializeToString()
    session = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])
    return np.concatenate([session.run(None, feed)[0] for feed in feeds])


def sqnr(exact: Array, rough: Array) -> float:
    error = exact.astype(np.float64) - rough
    return float(10 * np.log10((exact.astype(np.float64) ** 2).sum() / (error**2).sum()))
