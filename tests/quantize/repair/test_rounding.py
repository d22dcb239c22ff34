"""Passes that round weights: what they change in a model, and that it pays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hexqdq.import_.pipeline import import_model
from hexqdq.import_.product import ImportedModel
from hexqdq.qtypes import QType
from hexqdq.quantize.draft import Draft
from hexqdq.quantize.pipeline import quantize
from hexqdq.quantize.product import QdqModel
from hexqdq.quantize.recipe import Recipe
from hexqdq.quantize.repair.rounding import units as rounding
from tests.import_.models import outputs, parse
from tests.quantize.graphs import constants, model, normal

Array = NDArray[Any]
PLAIN: dict[str, Any] = {"gptq": False, "bias_correct": False, "smooth": False, "mixed": False}
PASSES = ("gptq", "adaround")
each = pytest.mark.parametrize("name", PASSES)

MODELS = {
    "conv": "m (float[1,3,8,8] x) => (float[1,4,6,6] y) { y = Conv(x, w, b) }",
    "linear": "m (float[2,4] x) => (float[2,5] y) { h = MatMul(x, wm) y = Add(h, bm) }",
    "bare": "m (float[1,3,8,8] x) => (float[1,4,8,8] y) { y = Conv<pads = [1,1,1,1]>(x, w) }",
}


def alike(text: str, count: int = 12) -> list[dict[str, Array]]:
    """Samples whose channels and places go together, around a mean."""
    (value,) = import_model(model(text)).model.graph.inputs
    assert value.shape is not None
    shape = value.shape.numpy()
    common = (normal(*(1 if size > 2 else size for size in shape), seed=30 + seed) for seed in range(count))
    return [{"x": 1 + one + normal(*shape, seed=seed, scale=0.1)} for seed, one in enumerate(common)]


def made(text: str, **options: Any) -> QdqModel:
    return quantize(import_model(model(text)), alike(text), Recipe(**PLAIN | options))


def error(text: str, qdq: QdqModel) -> float:
    differences = [outputs(model(text), feed)[0] - outputs(qdq.model, feed)[0] for feed in alike(text)]
    return float(np.mean(np.square(differences)))


@each
@pytest.mark.parametrize("text", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("weights, activations", [("s8", "u16"), ("s4", "u8"), ("s4", "s16"), ("u8", "u8")])
def test_the_error_falls(name: str, text: str, weights: str, activations: str) -> None:
    types = {"weights": QType.from_label(weights), "activations": QType.from_label(activations)}
    share = 0.7 if weights == "s4" or activations == "u16" else 1.0
    for bias_correct in (False, True):
        options = {**types, "bias_correct": bias_correct}
        assert error(text, made(text, **options, **{name: True})) < share * error(text, made(text, **options))


@each
def test_only_weights_change(name: str) -> None:
    plain, rounded = (constants(made(MODELS["conv"], **options)) for options in ({}, {name: True}))
    assert plain.keys() == rounded.keys()
    assert {key for key in plain if not np.array_equal(plain[key], rounded[key])} == {"Conv_y_weight_quantized"}


@each
def test_blocks(name: str) -> None:
    text = "m (float[4,64] x) => (float[4,8] y) { y = MatMul(x, v) }"
    imported = import_model(parse(text, v=normal(64, 8)))
    feeds = [{"x": normal(4, 64, seed=seed, scale=0.1) + normal(4, 1, seed=seed + 20)} for seed in range(20)]
    found = []
    for options in ({}, {name: True}):
        recipe = Recipe(**PLAIN | {"weights": QType.S4, "weight_block": 16, "activations": QType.U16} | options)
        qdq = quantize(imported, feeds, recipe)
        found.append(np.mean([(outputs(imported.model, f)[0] - outputs(qdq.model, f)[0]) ** 2 for f in feeds]))
    assert found[1] < 0.3 * found[0]


@each
def test_weights_that_two_nodes_read_stay_one(name: str) -> None:
    text = "m (float[6,4] x) => (float[6,4] y) { h = MatMul(x, v) r = Relu(h) y = MatMul(r, v) }"
    imported = import_model(parse(text, v=normal(4, 4)))
    feeds = [{"x": normal(6, 4, seed=seed) + 1} for seed in range(8)]
    qdq = quantize(imported, feeds, Recipe(**PLAIN | {name: True}))
    stored = [value for key, value in constants(qdq).items() if value.shape == (4, 4)]
    assert all(np.array_equal(stored[0], other) for other in stored)


@each
def test_groups_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "m (float[1,3,8,8] x) => (float[1,4,1,1] y) { h = Conv(x, w, b) r = Relu(h) y = GlobalAveragePool(r) }"
    both = text.replace("y = GlobalAveragePool(r)", "g = Conv<group = 4>(r, k) y = GlobalAveragePool(g)")
    imported = import_model(parse(both, w=normal(4, 3, 3, 3), b=normal(4), k=normal(4, 1, 3, 3)))
    recipe = Recipe(**PLAIN | {name: True})
    whole = quantize(imported, alike(text), recipe).digest
    assert len(list(rounding.packed(rounding.units(_draft(imported, recipe))))) == 1
    monkeypatch.setattr(rounding, "MOMENT_BYTES", 1)
    assert len(list(rounding.packed(rounding.units(_draft(imported, recipe))))) == 2
    assert quantize(imported, alike(text), recipe).digest == whole


def _draft(imported: ImportedModel, recipe: Recipe) -> Draft:
    return Draft(imported, recipe, quantize(imported, alike(MODELS["conv"]), recipe).ranges)


def test_float_nodes_are_left() -> None:
    imported = import_model(model(MODELS["conv"]))
    (node,) = imported.model.graph
    kept = quantize(imported, alike(MODELS["conv"]), Recipe(**PLAIN | {"gptq": True, "keep_float": (str(node.name),)}))
    np.testing.assert_array_equal(constants(kept)["w"], normal(4, 3, 3, 3, seed=1, scale=0.3))


def test_weights_that_came_quantized_are_kept() -> None:
    text = """m (float[1,3,8,8] x) => (float[1,4,4,4] y) {
        v = DequantizeLinear<axis = 0>(i, s, z)
        h = Conv(x, v)
        y = Conv(h, k)
    }"""
    integers = np.random.default_rng(0).integers(-127, 128, (4, 3, 3, 3)).astype(np.int8)
    scales = np.full(4, 0.01, np.float32)
    given = parse(text, i=integers, s=scales, z=np.zeros(4, np.int8), k=normal(4, 4, 3, 3))
    qdq = quantize(import_model(given), alike(MODELS["conv"]), Recipe(**PLAIN | {"gptq": True}))
    assert any(np.array_equal(value, integers) for value in constants(qdq).values())
