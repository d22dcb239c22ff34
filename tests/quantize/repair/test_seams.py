"""Scaling channels: the float model stays the same to the bit, and planted bad ranges are repaired."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper

from hexqdq.import_.pipeline import import_model
from hexqdq.quantize.draft import Draft
from hexqdq.quantize.overrides import Override
from hexqdq.quantize.pipeline import quantize
from hexqdq.quantize.recipe import Recipe
from hexqdq.quantize.repair.equalize import equalize
from hexqdq.quantize.repair.seams.find import seams
from hexqdq.quantize.repair.smooth import smooth
from hexqdq.quantize.scaled import marked
from tests.import_.models import outputs, parse
from tests.quantize.graphs import normal

Array = NDArray[Any]
Pass = Callable[..., Draft]
PASSES = pytest.mark.parametrize("repair", [smooth, equalize])
PLAIN = Recipe(smooth=False, mixed=False)

CONVS = """m (float[1,3,8,8] x) => (float[1,6,6,6] y) {
    a = Conv(x, w1, b1) b = {middle} y = Conv(b, w2, b2) }"""
SEAMS = {
    "relu": "Relu(a)",
    "leaky": "LeakyRelu<alpha = 0.2>(a)",
    "prelu": "PRelu(a, slopes)",
    "pool": "MaxPool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(a)",
    "added": "Add(a, shift)",
    "times": "Mul(a, gate)",
    "depthwise": "Conv<group = 4, pads = [1, 1, 1, 1]>(a, wd)",
}
NO_SEAMS = {
    "bounded": "Clip(a, zero, six)",
    "silu": "s = Sigmoid(a) b = Mul(a, s)",
    "squared": "Mul(a, a)",
    "shifted alone": "Add(a, plane)",
}


def constants() -> dict[str, Array]:
    """Weights whose middle channels reach a thousand times further than each other."""
    spread = np.array([1000, 1, 30, 0.5], np.float32)
    return {
        "w1": normal(4, 3, 1, 1, seed=1) * spread[:, None, None, None],
        "b1": normal(4, seed=2) * spread,
        "w2": normal(6, 4, 3, 3, seed=3) / spread[None, :, None, None],
        "b2": normal(6, seed=4),
        "wd": normal(4, 1, 3, 3, seed=5),
        "slopes": np.array([0.1, 0.2, 0.3, 1.5], np.float32).reshape(4, 1, 1),
        "shift": normal(4, 1, 1, seed=6) * spread[:, None, None],
        "plane": normal(1, 4, 8, 8, seed=7),
        "gate": normal(1, 4, 8, 8, seed=8),
        "zero": np.array(0, np.float32),
        "six": np.array(6, np.float32),
        "wm": normal(4, 5, seed=9) / spread[:, None],
        "gains": spread,
        "wx": normal(4, 4, seed=10) * spread,
    }


def built(text: str) -> onnx.ModelProto:
    made = parse(text)
    used = {name for node in made.graph.node for name in node.input}
    made.graph.initializer.extend(numpy_helper.from_array(v, n) for n, v in constants().items() if n in used)
    return made


def conv_text(middle: str) -> str:
    return CONVS.replace("{middle}", middle).replace("b = s = ", "s = ")


def feeds(model: onnx.ModelProto, count: int = 8) -> list[dict[str, Array]]:
    shapes = {v.name: tuple(d.dim_value for d in v.type.tensor_type.shape.dim) for v in model.graph.input}
    return [{name: normal(*shape, seed=seed) for name, shape in shapes.items()} for seed in range(count)]


def noise(model: onnx.ModelProto, recipe: Recipe) -> float:
    """The power of the quantized outputs' error over that of the outputs."""
    samples = feeds(model)
    qdq = quantize(import_model(model), samples, recipe)
    pairs = [(outputs(model, feed)[0], outputs(qdq.model, feed)[0]) for feed in samples]
    return float(sum(((a - b) ** 2).sum() for a, b in pairs) / sum((a**2).sum() for a, _ in pairs))


@PASSES
@pytest.mark.parametrize("middle", SEAMS.values(), ids=SEAMS)
def test_the_float_model_stays_the_same_to_the_bit(middle: str, repair: Pass) -> None:
    model = built(conv_text(middle))
    imported = import_model(model)
    draft = repair(Draft(imported, PLAIN), feeds(model))
    assert marked(draft.imported.model)
    for feed in feeds(model):
        np.testing.assert_array_equal(outputs(draft.imported.model, feed)[0], outputs(imported.model, feed)[0])
    assert not marked(imported.model), "the draft before is untouched"


@PASSES
@pytest.mark.parametrize("middle", NO_SEAMS.values(), ids=NO_SEAMS)
def test_what_does_not_commute_stays(middle: str, repair: Pass) -> None:
    model = built(conv_text(middle))
    draft = repair(Draft(import_model(model), PLAIN), feeds(model))
    assert not marked(draft.imported.model)


@PASSES
@pytest.mark.parametrize("middle", ["Relu(a)", "Conv<group = 4, pads = [1, 1, 1, 1]>(a, wd)"])
def test_a_second_time_changes_nothing(middle: str, repair: Pass) -> None:
    model = built(conv_text(middle))
    once = repair(Draft(import_model(model), PLAIN), feeds(model))
    twice = repair(once, feeds(model))
    for feed in feeds(model, 2):
        np.testing.assert_array_equal(outputs(twice.imported.model, feed)[0], outputs(once.imported.model, feed)[0])


@pytest.mark.parametrize("recipe", [Recipe(mixed=False), Recipe(mixed=False, smooth=False, equalize=True)])
def test_a_planted_spread_is_repaired(recipe: Recipe) -> None:
    model = built(conv_text("Relu(a)"))
    assert noise(model, recipe) < noise(model, PLAIN) / 100


def test_scales_move_out_of_normalizations() -> None:
    text = """m (float[1,70,4] x) => (float[1,70,5] y) {
        a = LayerNormalization<axis = -1>(x, gains) y = MatMul(a, wm) }"""
    model = built(text)
    draft = smooth(Draft(import_model(model), PLAIN), feeds(model))
    assert marked(draft.imported.model) == {"a"}
    assert noise(model, Recipe(mixed=False)) < noise(model, PLAIN) / 10


@PASSES
def test_constants_that_are_added_are_scaled(repair: Pass) -> None:
    text = """m (float[64,4] x) => (float[64,5] y) {
        h = MatMul(x, wx) a = Add(h, gains) r = Relu(a) y = MatMul(r, wm) }"""
    model = built(text)
    draft = repair(Draft(import_model(model), PLAIN), feeds(model))
    assert marked(draft.imported.model) >= {"h", "a", "r"}
    for feed in feeds(model):
        np.testing.assert_array_equal(outputs(draft.imported.model, feed)[0], outputs(model, feed)[0])


def test_a_value_that_others_read_stays() -> None:
    text = """m (float[1,3,8,8] x) => (float[1,6,6,6] y, float[1,4,8,8] a) {
        a = Conv(x, w1, b1) y = Conv(a, w2, b2) }"""
    assert not list(seams(import_model(built(text)).model.graph))


def test_shared_weights_are_not_changed_for_others() -> None:
    text = """m (float[1,3,8,8] x) => (float[1,6,6,6] y, float[1,4,8,8] z) {
        a = Conv(x, w1, b1) y = Conv(a, w2, b2) z = Conv(x, w1, b1) }"""
    model = built(text)
    draft = smooth(Draft(import_model(model), PLAIN), feeds(model))
    assert marked(draft.imported.model) == {"a"}
    for found, expected in zip(
        outputs(draft.imported.model, feeds(model)[0]), outputs(model, feeds(model)[0]), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_channels_that_samples_hardly_show_stay() -> None:
    model = built(conv_text("Relu(a)"))
    assert marked(smooth(Draft(import_model(model), PLAIN), feeds(model, 8)).imported.model)
    assert not marked(smooth(Draft(import_model(model), PLAIN), feeds(model, 7)).imported.model)


def test_ranges_that_the_recipe_gives_are_of_the_float_model() -> None:
    model = built(conv_text("Relu(a)"))
    given = Recipe(mixed=False, overrides=(Override(tensor="b", low=0.0, high=2000.0),))
    draft = smooth(Draft(import_model(model), given), feeds(model))
    assert not marked(draft.imported.model)
