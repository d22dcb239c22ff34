"""Weights of 4, 8 and 16 bits, signed and not, per tensor, channel and block; the presets that choose them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import numpy_helper

from hexqdq import numerics
from hexqdq.errors import UsageError
from hexqdq.import_.pipeline import import_model
from hexqdq.qtypes import QType
from hexqdq.quantize.pipeline import quantize
from hexqdq.quantize.product import QdqModel
from hexqdq.quantize.recipe import PRESETS, Recipe
from hexqdq.quantize.writing.weights import BIAS_LIMIT, quantize_bias, quantize_weights
from tests.import_.models import outputs, parse
from tests.quantize.graphs import model, normal, quantized, samples
from tests.quantize.planning.test_rows import params

Array = NDArray[Any]
TYPES = (QType.S8, QType.U8, QType.S4, QType.S16)
CONV = "m (float[1,3,6,6] x) => (float[1,4,4,4] y) { y = Conv(x, w, b) }"
PLAIN: dict[str, Any] = {"mixed": False, "bias_correct": False}


def of_type(qdq: QdqModel, op_type: str) -> ir.Node:
    (found,) = (node for node in qdq.model.graph if node.op_type == op_type)
    return found


def gemm(turned: bool, recipe: Recipe, rows: int = 64) -> tuple[QdqModel, Array, Array]:
    """A Gemm of 64 inputs and 5 outputs quantized; its float and its quantized output."""
    proto = parse(f"m (float[3,{rows}] x) => (float[3,5] y) {{ y = Gemm <transB = {int(turned)}> (x, weight, bias) }}")
    weight = normal(rows, 5, seed=3) * np.exp2(np.arange(rows) // 16)[:, None].astype(np.float32)
    held = np.ascontiguousarray(weight.T) if turned else weight
    proto.graph.initializer.extend(
        [numpy_helper.from_array(held, "weight"), numpy_helper.from_array(normal(5, seed=4), "bias")]
    )
    imported = import_model(proto)
    qdq = quantize(imported, samples(imported), recipe)
    return qdq, outputs(proto, samples(imported)[0])[0], outputs(qdq.model, samples(imported)[0])[0]


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("dtype", TYPES)
def test_weights_are_within_half_a_step(dtype: QType, axis: int | None) -> None:
    weights = normal(6, 32, seed=1) + np.float32(0.3)
    made = quantize_weights(weights, axis, dtype, 0.1, None)
    assert dtype.low <= made.values.min() and made.values.max() <= dtype.high
    error = np.abs(numerics.dequantize(made.values, made.params) - weights)
    steps = np.abs(weights) / numerics.dequantize(np.ones_like(made.values), made.params)
    inside = np.abs(steps) <= dtype.high if dtype.is_signed else np.ones(error.shape, np.bool_)
    scales = np.broadcast_to(made.params.scales().reshape([-1 if i == axis else 1 for i in range(2)]), error.shape)
    assert np.all(error[inside] <= 0.501 * scales[inside])


@given(st.integers(0, 99), st.sampled_from([16, 32]), st.sampled_from([0, 1]))
def test_a_block_has_a_scale_of_its_own(seed: int, block: int, axis: int) -> None:
    rows = normal(3, 64, seed=seed) * np.repeat(np.exp2(np.arange(64 // block)), block).astype(np.float32)
    weights = rows if axis == 0 else np.ascontiguousarray(rows.T)
    whole = quantize_weights(weights, axis, QType.S4, 0.1, None)
    made = quantize_weights(weights, axis, QType.S4, 0.1, None, block)
    shape = (3, 64 // block) if axis == 0 else (64 // block, 3)
    assert made.params.scales().shape == shape and made.params.axis == 1 - axis
    errors = [np.square(numerics.dequantize(one.values, one.params) - weights).sum() for one in (made, whole)]
    assert errors[0] < errors[1]


def test_four_bit_scales_clip_where_that_errs_least() -> None:
    weights = np.concatenate([normal(1, 400, seed=1), np.full((1, 1), 8, np.float32)], axis=1)
    made = quantize_weights(weights, 0, QType.S4, 0.1, None)
    reaching = np.round(weights / (8 / 7)) * (8 / 7)
    error = np.square(numerics.dequantize(made.values, made.params) - weights).sum()
    assert made.params.scale[0] < 8 / 7 and error < np.square(reaching - weights).sum()


def test_unsigned_weights_cover_their_range() -> None:
    weights = np.array([[0.5, 2.0], [-1.0, 0.0], [0, 0]], np.float32)
    made = quantize_weights(weights, 0, QType.U8, 0.1, None)
    np.testing.assert_array_equal(made.params.zero_points(), [0, 255, 0])
    np.testing.assert_allclose(made.params.scales()[:2] * 255, [2, 1], rtol=1e-6)


@given(st.sampled_from(TYPES), st.floats(2.0**-20, 2.0**10), st.floats(-1e9, 1e9, width=32), st.sampled_from([0, 16]))
def test_bias_fits_by_widening(dtype: QType, scale: float, bias: float, block: int) -> None:
    biases = np.full(3, bias, np.float32)
    made = quantize_weights(normal(3, 32, seed=2), 0, dtype, scale, biases, block)
    stored = quantize_bias(biases, scale, made.params)
    assert np.abs(stored.values.astype(np.int64)).max() <= BIAS_LIMIT * (1 + 1e-6)
    error = np.abs(numerics.dequantize(stored.values, stored.params) - biases)
    assert np.all(error <= stored.params.scales() + 1e-6 * np.abs(biases))


@pytest.mark.parametrize("activations", [QType.U8, QType.S8, QType.U16, QType.S16])
@pytest.mark.parametrize("weights", TYPES)
def test_onnxruntime_reads_every_pair_of_types(activations: QType, weights: QType) -> None:
    recipe = Recipe(activations=activations, weights=weights, **PLAIN)
    qdq = quantized(CONV, recipe)
    stored = of_type(qdq, "Conv").inputs[1]
    producer = stored.producer() if stored is not None else None
    assert producer is not None and producer.inputs[0] is not None
    unsigned = weights is QType.U8 and activations is QType.U8
    expected = {QType.S4: ir.DataType.INT4, QType.S16: ir.DataType.INT16}.get(weights, ir.DataType.INT8)
    assert producer.inputs[0].dtype == (ir.DataType.UINT8 if unsigned else expected)
    sample = {"x": normal(1, 3, 6, 6, seed=10)}
    (found,), (exact,) = outputs(qdq.model, sample), outputs(model(CONV), sample)
    assert np.abs(found - exact).max() <= (0.5 if weights is QType.S4 else 0.06)


@pytest.mark.parametrize("turned", [False, True])
def test_blocks_run_along_the_rows_of_a_matrix(turned: bool) -> None:
    recipe = Recipe(weights=QType.S4, weight_block=16, **PLAIN)
    qdq, exact, found = gemm(turned, recipe)
    node = of_type(qdq, "Gemm")
    restored = node.inputs[1].producer() if node.inputs[1] is not None else None
    assert restored is not None and node.attributes.get_int("transB", 0) == 0
    assert (restored.attributes["axis"].as_int(), restored.attributes["block_size"].as_int()) == (0, 16)
    scale, zero_point = params(node.inputs[1])
    assert scale.shape == zero_point.shape == (4, 5)
    assert params(node.inputs[2])[1].dtype == np.int32
    _, _, whole = gemm(turned, Recipe(weights=QType.S4, **PLAIN))
    assert np.abs(found - exact).max() < np.abs(whole - exact).max()


def test_blocks_that_do_not_divide_a_matrix_are_left_out() -> None:
    node = of_type(gemm(False, Recipe(weights=QType.S4, weight_block=16, **PLAIN), rows=40)[0], "Gemm")
    assert params(node.inputs[1])[0].shape == (5,)


def test_kernels_of_one_channel_keep_eight_bits() -> None:
    proto = parse("m (float[1,4,6,6] x) => (float[1,4,6,6] y) { y = Conv <group = 4, pads = [1,1,1,1]> (x, k) }")
    proto.graph.initializer.append(numpy_helper.from_array(normal(4, 1, 3, 3), "k"))
    imported = import_model(proto)
    qdq = quantize(imported, samples(imported), Recipe(weights=QType.S4, **PLAIN))
    assert params(of_type(qdq, "Conv").inputs[1])[1].dtype == np.int8


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_a_recipe(preset: str) -> None:
    recipe = Recipe.preset(preset)
    assert Recipe.from_json(recipe.to_json()) == recipe
    if preset != "auto":
        bits = f"a{recipe.activations.bits}w{recipe.weights.bits}"
        assert bits == preset


def test_the_default_is_auto() -> None:
    assert Recipe.preset("auto") == Recipe()


def test_an_unknown_preset_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match="is 'a4w4'; expected one of auto, a8w8, a16w8, a8w4, a16w4"):
        Recipe.preset("a4w4")
