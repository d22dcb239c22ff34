"""Small float models to quantize and what they compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from hexqdq.import_.pipeline import import_model
from hexqdq.import_.product import ImportedModel
from hexqdq.quantize.pipeline import quantize
from hexqdq.quantize.product import QdqModel
from hexqdq.quantize.recipe import Recipe
from tests.import_.models import outputs, parse

Array = NDArray[Any]


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> Array:
    return (scale * np.random.default_rng(seed).normal(size=shape)).astype(np.float32)


CONSTANTS = {
    "w": normal(4, 3, 3, 3, seed=1, scale=0.3),
    "b": normal(4, seed=2),
    "wm": normal(4, 5, seed=3),
    "bm": normal(5, seed=4),
    "row": normal(1, 5, seed=5),
    "six": np.array(6, np.float32),
    "zero": np.array(0, np.float32),
    "half": np.array(0.5, np.float32),
    "slopes": np.array([0.1, 0.2, -0.1, 1.5], np.float32).reshape(4, 1, 1),
    "flat": np.array([1, 4], np.int64),
    "fours": np.array([4, 4], np.int64),
    "pads": np.array([0, 0, 2, 2, 0, 0, 2, 2], np.int64),
    "two": np.array([2, 2], np.int64),
    "sides": np.array([2, 3], np.int64),
    "eight": np.array([8, 8], np.int64),
    "twice": np.array([1, 1, 2, 2], np.float32),
    "cube": np.array([1, 4, 1, 1], np.int64),
}


def model(text: str) -> onnx.ModelProto:
    """A model from text, in which the constants are there by name."""
    made = parse(text)
    used = {name for node in made.graph.node for name in node.input}
    made.graph.initializer.extend(
        numpy_helper.from_array(CONSTANTS[name], name) for name in sorted(used & set(CONSTANTS))
    )
    return made


def samples(imported: ImportedModel, count: int = 8) -> list[dict[str, Array]]:
    return [
        {str(v.name): normal(*v.shape.numpy(), seed=seed + 10) for v in imported.model.graph.inputs if v.shape}
        for seed in range(count)
    ]


def quantized(text: str, recipe: Recipe | None = None) -> QdqModel:
    imported = import_model(model(text))
    return quantize(imported, samples(imported), recipe)


def ops(qdq: QdqModel) -> list[str]:
    """Op types in order, Q and DQ left out."""
    return [n.op_type for n in qdq.model.graph if n.op_type not in ("QuantizeLinear", "DequantizeLinear")]


def count(qdq: QdqModel, op_type: str) -> int:
    return sum(node.op_type == op_type for node in qdq.model.graph)


def constants(qdq: QdqModel) -> dict[str, Array]:
    values = qdq.model.graph.initializers.values()
    return {str(v.name): v.const_value.numpy() for v in values if v.const_value is not None}


def both(text: str, recipe: Recipe | None = None) -> tuple[list[Array], list[Array]]:
    """Outputs of the float model and of the QDQ model on one calibration sample."""
    imported = import_model(model(text))
    feeds = samples(imported)[0]
    return outputs(model(text), feeds), outputs(quantize(imported, samples(imported), recipe).model, feeds)
