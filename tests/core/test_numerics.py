"""The rounding rules, against exact arithmetic and against their domain's borders."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hexqdq import numerics
from hexqdq.errors import QuantizationError, RescaleError
from hexqdq.qtypes import QType, QuantParams

U8 = QuantParams.per_tensor(QType.U8, 0.1, 128)


def exact_rescale(value: int, multiplier: int, shift: int) -> int:
    return math.floor(Fraction(value * multiplier, 1 << shift) + Fraction(1, 2))


@given(st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**31 - 1), st.integers(2, 62))
def test_rescale_rounds_half_up_once(value: int, multiplier: int, shift: int) -> None:
    rescale = numerics.Rescale((multiplier,), shift, True)
    assert rescale.apply(np.array([value], np.int64))[0] == exact_rescale(value, multiplier, shift)


@given(st.floats(2.0**-30, 2.0**11), st.integers(1, 2**18))
def test_chosen_multiplier_is_accurate_inside_the_output_range(ratio: float, bound: int) -> None:
    bound = min(bound, int((2**31 - 2) / ratio))
    rescale = numerics.rescaler("unit", np.array([ratio]), np.array([bound]), U8)
    reach = min(bound, 128.5 / ratio)
    error = abs(rescale.multipliers[0] / 2**rescale.shift - ratio) * reach
    assert error <= numerics.MULTIPLIER_ERROR
    assert rescale.multipliers[0] < (2**31 if rescale.scale32 else 2**15)


def test_channels_share_a_shift_and_small_ones_force_31_bits() -> None:
    close = numerics.rescaler("unit", np.array([0.01, 0.008]), np.array([1000, 1000]), U8)
    apart = numerics.rescaler("unit", np.array([0.5, 0.0005]), np.array([10**6, 10**6]), U8)
    assert not close.scale32 and len(close.multipliers) == 2
    assert apart.scale32
    assert apart.multipliers[1] / 2**apart.shift == pytest.approx(0.0005, rel=1e-5)


def test_vanishing_multiplier_is_reported() -> None:
    rescale = numerics.rescaler("unit", np.array([1.0, 2.0**-40]), np.array([100, 100]), U8)
    assert rescale.vanished == (1,)


@pytest.mark.parametrize(
    ("ratios", "bound", "found"),
    [
        ([2.0**30], 1, "shift"),
        ([0.5], 2**33, "accumulators"),
        ([2.0**10], 2**25, "scaled values"),
        ([0.9, 0.0001], 2**30, "below 2\\^30"),
    ],
)
def test_outside_the_domain_is_refused_by_name(ratios: list[float], bound: int, found: str) -> None:
    with pytest.raises(RescaleError, match=found) as caught:
        numerics.rescaler("conv_7", np.array(ratios), np.array([bound]), U8)
    assert caught.value.subject == "conv_7"


def test_quantize_rounds_half_to_even_and_saturates() -> None:
    params = QuantParams.per_tensor(QType.S8, 1.0, 0)
    values = np.array([0.5, 1.5, 2.5, -0.5, 127.5, -1e9, np.inf, np.nan], np.float32)
    assert numerics.quantize(values, params).tolist() == [0, 2, 2, 0, 127, -128, 127, 0]


def test_quantize_per_channel_and_back() -> None:
    params = QuantParams.per_channel(QType.S8, np.array([0.5, 2.0], np.float32), np.array([0, 1]), axis=1)
    values = np.array([[1.0, 4.0], [-2.0, 0.0]], np.float32)
    integers = numerics.quantize(values, params)
    assert integers.tolist() == [[2, 3], [-4, 1]]
    assert np.array_equal(numerics.dequantize(integers, params), values)


@given(st.floats(-1e6, 1e6, width=32), st.floats(-1e6, 1e6, width=32))
@example(0.0, 3.923635700109488e-43)
def test_activation_params_cover_the_range_and_hold_zero(one: float, other: float) -> None:
    low, high = min(one, other), max(one, other)
    params = numerics.activation_params(low, high, QType.U8)
    ends = numerics.dequantize(numerics.quantize(np.array([low, 0.0, high], np.float32), params), params)
    assert ends[1] == 0
    assert np.all(np.abs(ends - np.array([low, 0.0, high], np.float32)) <= params.scale[0] * 1.001)


@given(st.floats(-20, 20, width=32), st.floats(-20, 20, width=32), st.floats(-30, 30, width=32))
def test_clamping_integers_equals_clamping_reals(one: float, other: float, value: float) -> None:
    low, high = min(one, other), max(one, other)
    bounds = numerics.clamp_bounds(low, high, U8)
    real = numerics.quantize(np.clip(np.array([value], np.float32), np.float32(low), np.float32(high)), U8)
    assert np.array_equal(real, np.clip(numerics.quantize(np.array([value], np.float32), U8), *bounds))


def test_bias_keeps_bits_where_its_scale_is_the_product() -> None:
    values = np.array([5, -(2**31) + 1], np.int32)
    scale = np.float32(0.1) * np.float32(0.3)
    params = QuantParams.per_tensor(QType.S32, float(scale), 0)
    kept = numerics.bias_integers("conv", values, params, np.full(2, float(scale) * (1 + 1e-7)))
    assert np.array_equal(kept, values)
    moved = numerics.bias_integers("conv", np.array([100], np.int32), params, np.array([float(scale) / 3]))
    assert moved.tolist() == [300]
    with pytest.raises(RescaleError, match="bias reaches"):
        numerics.bias_integers("conv", np.array([1e9], np.float32), None, np.array([1e-3]))


@given(st.floats(2.0**-20, 2.0**20), st.floats(2.0**-20, 2.0**20))
def test_sum_scale_is_15_bits_and_near(left: float, right: float) -> None:
    scale = numerics.sum_scale(left, right)
    assert max(scale.left, scale.right) == 1 << 14
    assert abs(scale.left * scale.scale - left) <= scale.scale / 2
    assert abs(scale.right * scale.scale - right) <= scale.scale / 2


def test_exp_table_is_correctly_rounded() -> None:
    table = numerics.exp_table(0.1, 20)
    assert table[0] == 1 << 20
    assert np.max(np.abs(table - (1 << 20) * np.exp(-0.1 * np.arange(256)))) <= 0.5 + 1e-6


@given(st.integers(1, 2**30))
def test_reciprocal_has_15_good_bits(value: int) -> None:
    reciprocal, zeros = numerics.reciprocal(np.array([value], np.int64))
    assert zeros[0] == 32 - value.bit_length()
    estimate = Fraction(int(reciprocal[0])) * Fraction(2) ** (int(zeros[0]) - 47)
    assert abs(estimate * value - 1) <= Fraction(1, 1 << 14)


@given(st.integers(-(2**40), 2**40), st.integers(0, 31))
def test_rounding_shift_rounds_half_up(value: int, shift: int) -> None:
    result = numerics.rounding_shift(np.array([value], np.int64), shift)[0]
    assert result == math.floor(Fraction(value, 1 << shift) + (Fraction(1, 2) if shift else 0))


def test_sign_forms_are_inverse() -> None:
    values = np.arange(256, dtype=np.uint8)
    signed = numerics.to_tosa(values, QType.U8)
    assert signed.dtype == np.int8
    assert np.array_equal(signed.astype(int), values.astype(int) + numerics.tosa_offset(QType.U8))
    assert np.array_equal(numerics.from_tosa(signed, QType.U8), values)


@pytest.mark.parametrize(
    ("scale", "zero_point"), [((0.0,), (0,)), ((-1.0,), (0,)), ((math.inf,), (0,)), ((0.1,), (0,)), ((1.0,), (256,))]
)
def test_invalid_parameters_are_refused(scale: tuple[float, ...], zero_point: tuple[int, ...]) -> None:
    with pytest.raises(QuantizationError):
        QuantParams(QType.U8, scale, zero_point)


def test_parameters_survive_json() -> None:
    params = QuantParams.per_channel(QType.S8, np.array([0.1, 3e-9], np.float32), np.array([0, -3]), 0)
    assert QuantParams.from_json(params.to_json()) == params


def test_exp_has_forty_digits() -> None:
    expected = Fraction("2.718281828459045235360287471352662497757")
    assert abs(numerics.exp(Fraction(1)) - expected) < Fraction(1, 10**38)
    assert numerics.exp(Fraction(10**9)) == numerics.exp(Fraction(1000))


def test_a_table_rounds_half_to_even_and_saturates() -> None:
    source, result = QuantParams.per_tensor(QType.S8, 0.5, 0), QuantParams.per_tensor(QType.U8, 1.0, 10)
    values = numerics.table(lambda x: x, source, result)
    assert values[128 : 128 + 8].tolist() == [10, 10, 11, 12, 12, 12, 13, 14]
    assert values[0] == 0 and numerics.table(lambda x: 1000 * x, source, result)[-1] == 255


def test_nearest_quotients_round_halves_up() -> None:
    assert numerics.nearest_quotients(12, np.array([1, 5, 6, 7, 8])).tolist() == [12, 2, 2, 2, 2]


@pytest.mark.parametrize("dtype", [QType.U8, QType.S8, QType.U16, QType.S16, QType.S4, QType.S32], ids=str)
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_pieces_of_a_large_tensor_are_quantized_alike(
    dtype: QType, axis: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    values = (rng.normal(size=(7, 5)) * 10.0 ** rng.integers(-3, 7, (7, 5))).astype(np.float32)
    values.reshape(-1)[:4] = [np.nan, np.inf, -np.inf, 3e38]
    count = 1 if axis is None else values.shape[axis]
    scales = rng.uniform(0.01, 1, count).astype(np.float32)
    zeros = np.zeros(count, np.int64) if dtype is QType.S32 else rng.integers(0, 7, count)
    params = QuantParams.per_channel(dtype, scales, zeros, axis or 0)
    if axis is None:
        params = QuantParams.per_tensor(dtype, float(scales[0]), int(zeros[0]))
    shape = [-1 if index == axis else 1 for index in range(2)]
    with np.errstate(over="ignore"):
        divided = np.rint(values / scales.reshape(shape)).astype(np.float64)
    steps = np.nan_to_num(divided, nan=0, posinf=1e300, neginf=-1e300)
    expected = np.clip(steps + zeros.reshape(shape), dtype.low, dtype.high).astype(np.int64)
    for piece in (4, 1 << 20):
        monkeypatch.setattr(numerics, "PIECE", piece)
        np.testing.assert_array_equal(numerics.quantize(values, params).astype(np.int64), expected)
