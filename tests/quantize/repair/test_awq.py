"""Activation-aware weight scaling: an equal float model, whose few-bit weights err less where it counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper

from hexqdq.import_.pipeline import import_model
from hexqdq.qtypes import QType
from hexqdq.quantize.draft import Draft
from hexqdq.quantize.overrides import Override
from hexqdq.quantize.pipeline import quantize
from hexqdq.quantize.planning.choices import chosen
from hexqdq.quantize.recipe import PRESETS, Recipe
from hexqdq.quantize.repair.awq import awq
from hexqdq.quantize.scaled import marked
from tests.import_.models import outputs, parse
from tests.quantize.graphs import normal

Array = NDArray[Any]
FOUR = replace(Recipe.preset("a16w4"), gptq=False, smooth=False)
CHANNELS = 64
NORM = """m (float[1,80,64] x) => (float[1,80,32] y, float[1,80,32] z) {
    a = LayerNormalization<axis = -1>(x, gains, shifts) y = MatMul(a, wy) z = MatMul(a, wz) }"""
LINEAR = """m (float[80,64] x) => (float[80,32] y) {
    h = MatMul(x, wx) a = Add(h, shifts) r = Relu(a) y = Gemm<transB = 1>(r, wt) }"""
CONVS = """m (float[1,3,8,8] x) => (float[1,8,6,6] y) {
    a = Conv(x, k1, shifts) r = Relu(a) y = Conv(r, k2) }"""
SHARED = """m (float[1,80,64] x) => (float[1,80,32] y, float[1,80,32] z) {
    a = LayerNormalization<axis = -1>(x, gains, shifts) y = MatMul(a, wy) z = MatMul(x, wy) }"""
GRAPHS = pytest.mark.parametrize("text", [NORM, LINEAR])


def built(text: str) -> onnx.ModelProto:
    """A model in which four channels of ``a`` reach fifty times further than the others."""
    far = np.where(np.arange(CHANNELS) % 16 == 5, 50, 1).astype(np.float32)
    constants = {
        "gains": far,
        "shifts": far * normal(CHANNELS, seed=1),
        "wy": normal(CHANNELS, 32, seed=2),
        "wz": normal(CHANNELS, 32, seed=3),
        "wx": normal(CHANNELS, CHANNELS, seed=4) * far,
        "wt": normal(32, CHANNELS, seed=5),
        "k1": normal(CHANNELS, 3, 1, 1, seed=6) * far[:, None, None, None],
        "k2": normal(8, CHANNELS, 3, 3, seed=7),
    }
    made = parse(text)
    used = {name for node in made.graph.node for name in node.input}
    made.graph.initializer.extend(numpy_helper.from_array(v, n) for n, v in constants.items() if n in used)
    return made


def feeds(model: onnx.ModelProto, count: int = 8) -> list[dict[str, Array]]:
    shape = tuple(size.dim_value for size in model.graph.input[0].type.tensor_type.shape.dim)
    return [{"x": normal(*shape, seed=seed)} for seed in range(count)]


def repaired(model: onnx.ModelProto, recipe: Recipe = FOUR) -> Draft:
    imported = import_model(model)
    resolved, choices = chosen(imported, recipe)
    return awq(Draft(imported, resolved, choices=choices), feeds(model))


def noise(model: onnx.ModelProto, recipe: Recipe) -> float:
    """The power of the first output's error over that of the output, on samples of its own."""
    qdq = quantize(import_model(model), feeds(model), recipe)
    pairs = [(outputs(model, feed)[0], outputs(qdq.model, feed)[0]) for feed in feeds(model, 12)[8:]]
    return float(sum(((a - b) ** 2).sum() for a, b in pairs) / sum((a**2).sum() for a, _ in pairs))


@GRAPHS
def test_the_float_model_stays_the_same_up_to_float_noise(text: str) -> None:
    model = built(text)
    draft = repaired(model)
    assert marked(draft.imported.model)
    for feed in feeds(model):
        for found, expected in zip(outputs(draft.imported.model, feed), outputs(model, feed), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize(("text", "share"), [(NORM, 0.6), (LINEAR, 0.8)])
def test_weights_that_meet_large_activations_lose_less(text: str, share: float) -> None:
    model = built(text)
    assert noise(model, FOUR) < share * noise(model, replace(FOUR, awq=False))


def test_scales_that_clipping_would_lose_again_stay() -> None:
    """A channel's one scale cuts off its largest weights, which would be those that were made large."""
    assert not marked(repaired(built(CONVS)).imported.model)


@GRAPHS
def test_a_second_time_changes_nothing(text: str) -> None:
    model = built(text)
    once = repaired(model)
    assert awq(once, feeds(model)) is once


def test_names_and_origins_stay() -> None:
    model = built(NORM)
    before, after = import_model(model), repaired(model).imported
    assert after.origin == before.origin
    for found, expected in zip(after.model.graph, before.model.graph, strict=True):
        assert (found.name, [v.name for v in found.outputs]) == (expected.name, [v.name for v in expected.outputs])


def test_what_others_read_stays() -> None:
    model = built(SHARED)
    draft = repaired(model)
    assert marked(draft.imported.model) == {"a"}
    feed = feeds(model)[0]
    np.testing.assert_array_equal(outputs(draft.imported.model, feed)[1], outputs(model, feed)[1])


def test_weights_of_eight_bits_stay() -> None:
    assert not marked(repaired(built(NORM), replace(FOUR, weights=QType.S8)).imported.model)


def test_few_bits_may_be_those_of_single_nodes() -> None:
    overrides = (Override(op_type="MatMul", weights=QType.S4),)
    assert marked(repaired(built(NORM), replace(Recipe(), awq=True, overrides=overrides)).imported.model) == {"a"}


def test_channels_that_samples_hardly_show_stay() -> None:
    model = built(NORM)
    imported = import_model(model)
    assert not marked(awq(Draft(imported, FOUR), feeds(model, 6)).imported.model)
    assert marked(awq(Draft(imported, FOUR), feeds(model, 7)).imported.model)


def test_on_where_weights_have_four_bits() -> None:
    assert {name for name in PRESETS if Recipe.preset(name).awq} == {"a8w4", "a16w4"}
