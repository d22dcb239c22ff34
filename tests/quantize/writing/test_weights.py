"""Weights and biases over drawn magnitudes: half a step at most, and never out of 32 bits."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hexqdq import numerics
from hexqdq.qtypes import QType
from hexqdq.quantize.planning.encodings import span_params
from hexqdq.quantize.planning.plan import Groups
from hexqdq.quantize.writing.weights import BIAS_LIMIT, CHANNEL_FLOOR, quantize_bias, quantize_weights

EXPONENTS = st.lists(st.integers(-30, 10), min_size=1, max_size=5)


@given(EXPONENTS, st.integers(0, 99), st.sampled_from([0, None]))
def test_weights_are_within_half_a_step(exponents: list[int], seed: int, axis: int | None) -> None:
    weights = np.random.default_rng(seed).uniform(-1, 1, (len(exponents), 7)) * np.exp2(exponents)[:, None]
    weights = weights.astype(np.float32)
    made = quantize_weights(weights, axis, QType.S8, 0.1, None)
    error = np.abs(numerics.dequantize(made.values, made.params) - weights)
    assert np.all(error <= made.params.scales().reshape(-1, 1) * 0.5001)
    assert made.params.is_symmetric and made.values.min() >= -127


@given(EXPONENTS, st.integers(0, 99), st.floats(2.0**-20, 2.0**10), st.floats(-1e9, 1e9, width=32))
def test_bias_fits_by_widening_its_channel(exponents: list[int], seed: int, scale: float, bias: float) -> None:
    weights = np.random.default_rng(seed).uniform(-1, 1, (len(exponents), 7)) * np.exp2(exponents)[:, None]
    biases = np.full(len(exponents), bias, np.float32)
    made = quantize_weights(weights.astype(np.float32), 0, QType.S8, scale, biases)
    stored = quantize_bias(biases, scale, made.params)
    assert np.abs(stored.values.astype(np.int64)).max() <= BIAS_LIMIT * (1 + 1e-6)
    error = np.abs(numerics.dequantize(stored.values, stored.params) - biases)
    assert np.all(error <= stored.params.scales() + 1e-6 * np.abs(biases))


def test_dead_and_tiny_channels_get_usable_scales() -> None:
    weights = np.array([[0, 0], [1, -1], [1e-12, 0]], np.float32)
    scales = quantize_weights(weights, 0, QType.S8, 1.0, None).params.scales()
    np.testing.assert_allclose(scales * 127, [1, 1, CHANNEL_FLOOR], rtol=1e-6)
    assert quantize_weights(np.zeros((2, 2), np.float32), 0, QType.S8, 1.0, None).params.scales()[0] > 0


@given(
    st.floats(-(2.0**100), 2.0**100, width=32),
    st.floats(-(2.0**100), 2.0**100, width=32),
    st.sampled_from([QType.U8, QType.S8]),
)
def test_span_holds_zero_and_both_ends(first: float, second: float, dtype: QType) -> None:
    low, high = min(first, second), max(first, second)
    params = span_params(low, high, dtype)
    held = numerics.dequantize(numerics.quantize(np.array([low, 0.0, high], np.float32), params), params)
    assert held[1] == 0.0
    step = params.scale[0] * 1.0001
    assert abs(held[0] - low) <= step and abs(held[2] - high) <= step


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=20))
def test_groups_are_the_connected_components(pairs: list[tuple[int, int]]) -> None:
    groups = Groups()
    components = {n: {n} for n in range(10)}
    for left, right in pairs:
        groups.join(str(left), str(right))
        merged = components[left] | components[right]
        components |= dict.fromkeys(merged, merged)
    for left in range(10):
        for right in range(10):
            assert (groups.find(str(left)) == groups.find(str(right))) == (right in components[left])
