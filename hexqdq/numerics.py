"""The one place of rounding: quantize, dequantize, scale ratios to multipliers, requantize, tables.

Requantization is TOSA 1.0 RESCALE with SINGLE_ROUND:
``(value * multiplier + (1 << (shift - 1))) >> shift``, then the zero point, then saturation.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq.errors import RescaleError
from hexqdq.qtypes import QType, QuantParams

Array = NDArray[Any]
Integers = NDArray[np.int64]

I32_MAX = (1 << 31) - 1
SHIFT_MIN, SHIFT_MAX = 2, 62
"""TOSA's range of a RESCALE shift."""
MULTIPLIER_ERROR = 1 / 16
"""Steps that a 16-bit multiplier's own rounding may move a value that stays inside the output range."""
NARROW_BITS = 16
"""Integers of so many bits, and differences of two, are exact in float32."""
PIECE = 1 << 18
"""Elements of a large tensor that are quantized at once, so that what lies between stays in the cache."""
SUM_BITS = 14
"""Addition brings both operands to a common scale by integers of at most 15 bits over 2**14."""


def saturate(values: Array, dtype: QType) -> Array:
    """Values limited to the range of ``dtype``, in its numpy type."""
    return np.clip(values, dtype.low, dtype.high).astype(dtype.numpy)


def _spread(values: Array, params: QuantParams, rank: int) -> Array:
    """Scales or zero points shaped to broadcast over a tensor of ``rank``, those of blocks over its elements."""
    if params.block:
        assert params.axis is not None
        return values.repeat(params.block, params.axis)
    return _along(values, params.axis, rank)


def _along(values: Array, axis: int | None, rank: int) -> Array:
    """Per-channel values [channels] shaped to broadcast along ``axis`` of a tensor of ``rank``."""
    if axis is None:
        return values.reshape(())
    shape = [1] * rank
    shape[axis] = -1
    return values.reshape(shape)


def whole(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The whole numbers nearest to reals, ties to even as in QuantizeLinear."""
    return np.asarray(np.rint(values))


def quantize(values: Array, params: QuantParams) -> Array:
    """QuantizeLinear: float32 division, round half to even, zero point, saturate.

    NaN becomes the zero point, infinities the ends of the type.
    """
    scale = _spread(params.scales(), params, values.ndim)
    zero_point = _spread(params.zero_points().astype(np.float64), params, values.ndim)
    steps_of = _narrow_steps if params.dtype.bits <= NARROW_BITS else _wide_steps
    if values.size <= PIECE or values.ndim < 2:
        return steps_of(values, scale, zero_point, params.dtype)
    found = np.empty(values.shape, params.dtype.numpy)
    rows = max(1, PIECE * len(values) // values.size)
    for start in range(0, len(values), rows):
        piece = slice(start, start + rows)
        found[piece] = steps_of(values[piece], _part(scale, piece), _part(zero_point, piece), params.dtype)
    return found


def _part(held: Array, piece: slice) -> Array:
    """What broadcasts over a piece of the rows."""
    return held[piece] if held.ndim and len(held) > 1 else held


def _wide_steps(values: Array, scale: Array, zero_point: Array, dtype: QType) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.rint(values.astype(np.float32) / scale).astype(np.float64)
    return saturate(np.nan_to_num(steps, nan=0.0, posinf=np.inf, neginf=-np.inf) + zero_point, dtype)


def _narrow_steps(values: Array, scale: Array, zero_point: Array, dtype: QType) -> Array:
    """The same where float32 holds every integer of the type: limited before the zero point is added."""
    zero_point = zero_point.astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.asarray(np.divide(values, scale, dtype=np.float32))
        np.rint(steps, out=steps)
    unknown = np.isnan(steps)
    if unknown.any():
        steps[unknown] = 0
    np.clip(steps, dtype.low - zero_point, dtype.high - zero_point, out=steps)
    steps += zero_point
    return steps.astype(dtype.numpy)


def dequantize(values: Array, params: QuantParams) -> NDArray[np.float32]:
    """DequantizeLinear: ``(values - zero_point) * scale`` in float32."""
    scale = _spread(params.scales(), params, values.ndim)
    zero_point = _spread(params.zero_points().astype(np.int64), params, values.ndim)
    if params.dtype.bits > NARROW_BITS:
        return (values.astype(np.int64) - zero_point).astype(np.float32) * scale
    steps: NDArray[np.float32] = values.astype(np.float32)
    steps -= zero_point.astype(np.float32)
    steps *= scale
    return steps


def activation_params(low: float, high: float, dtype: QType) -> QuantParams:
    """Asymmetric parameters that cover [low, high] and 0, which gets an exact integer.

    Scale = (high - low) / (2**bits - 1), at least the smallest normal float32; an empty range gets scale 1.
    """
    low, high = min(low, 0.0), max(high, 0.0)
    levels = dtype.high - dtype.low
    scale = float(np.float32((high - low) / levels))
    if not scale > 0:
        return QuantParams.per_tensor(dtype, 1.0, dtype.low)
    scale = max(scale, float(np.finfo(np.float32).tiny))
    zero_point = round(dtype.low - low / scale)
    return QuantParams.per_tensor(dtype, scale, min(max(zero_point, dtype.low), dtype.high))


def zero_points(lows: Array, scales: Array, dtype: QType) -> Integers:
    """The integers of ``dtype`` nearest to 0 where its lowest stands for ``lows``, as ONNX rounds."""
    found = np.rint(dtype.low - np.asarray(lows, np.float64) / scales).astype(np.int64)
    return np.asarray(np.clip(found, dtype.low, dtype.high), np.int64)


def bounded(values: Array, bounds: tuple[int, int]) -> Array:
    """Integers limited to ``bounds``."""
    return np.clip(values, *bounds)


def nearest(steps: Array, bounds: tuple[int, int]) -> Array:
    """Real numbers of steps as the nearest integers, half to even, limited to ``bounds``."""
    return bounded(np.rint(steps), bounds)


def clamp_bounds(low: float, high: float, params: QuantParams) -> tuple[int, int]:
    """Integer bounds equal to clamping the real value to [low, high] before quantizing it."""
    bounds = quantize(np.array([low, high], np.float32), params)
    return int(bounds[0]), int(bounds[1])


@dataclass(frozen=True)
class Rescale:
    """A RESCALE: non-negative multipliers, one or one a channel, over one shift.

    ``scale32`` tells 31-bit multipliers from 15-bit ones.
    """

    multipliers: tuple[int, ...]
    shift: int
    scale32: bool

    @property
    def vanished(self) -> tuple[int, ...]:
        """The channels whose multiplier rounded to 0: they only ever give the zero point."""
        return tuple(index for index, value in enumerate(self.multipliers) if value == 0)

    def apply(self, values: Integers, axis: int | None = None) -> Integers:
        """``values * multiplier / 2**shift`` rounded half up, channels along ``axis``."""
        multipliers = np.array(self.multipliers, np.int64)
        along = axis if len(self.multipliers) > 1 else None
        product = values * _along(multipliers, along, values.ndim)
        return (product + (1 << (self.shift - 1))) >> self.shift


IDENTITY = Rescale((1 << 14,), 14, False)
"""RESCALE by exactly 1: from 8 bits to 32."""


def requantize(
    values: Integers, rescale: Rescale, params: QuantParams, bounds: tuple[int, int], axis: int | None = None
) -> Array:
    """Accumulators to the integers of ``params``: rescale, zero point, saturate, then limit to ``bounds``."""
    integers = saturate(rescale.apply(values, axis) + params.zero_point[0], params.dtype)
    return bounded(integers, bounds)


def _multipliers(ratios: NDArray[np.float64], bits: int) -> tuple[list[int], int]:
    """Multipliers below 2**bits over the largest common shift that keeps them there."""
    exponent = math.frexp(float(ratios.max()))[1]
    shift = min(bits - exponent, SHIFT_MAX)
    if shift >= 0 and round(math.ldexp(float(ratios.max()), shift)) == 1 << bits:
        shift -= 1
    return [round(math.ldexp(float(ratio), shift)) for ratio in ratios], shift


def _error_steps(multipliers: Sequence[int], shift: int, ratios: Array, bounds: Array, span: float) -> float:
    """The largest shift of a result inside the output range that rounding the multipliers causes."""
    reach = np.minimum(bounds, span / ratios)
    exact = np.array([math.ldexp(float(m), -shift) for m in multipliers])
    return float(np.max(np.abs(exact - ratios) * reach))


def rescaler(subject: str, ratios: Array, bounds: Array, params: QuantParams) -> Rescale:
    """The RESCALE from accumulators to the integers of ``params``.

    ``ratios`` are the real scale ratios per channel (float64 [channels]); ``bounds`` the largest
    absolute accumulator of each. 15-bit multipliers where their rounding moves no result inside the
    output range by more than 1/16 step, 31-bit ones otherwise. Raises RescaleError naming
    ``subject`` where TOSA's domain does not hold: shift 2..62, accumulator and scaled value within
    32 bits, for 31-bit multipliers the accumulator within +-2**(shift-1).
    """
    ratios, bounds = np.broadcast_arrays(np.asarray(ratios, np.float64), np.asarray(bounds, np.float64))
    zero_point = params.zero_point[0]
    span = max(params.dtype.high - zero_point, zero_point - params.dtype.low) + 0.5
    multipliers, shift = _multipliers(ratios, 15)
    scale32 = _error_steps(multipliers, shift, ratios, bounds, span) > MULTIPLIER_ERROR
    if scale32:
        multipliers, shift = _multipliers(ratios, 31)
    if len(set(multipliers)) == 1:
        multipliers = multipliers[:1]
    _check_domain(subject, shift, ratios, bounds, scale32)
    return Rescale(tuple(multipliers), shift, scale32)


def _check_domain(subject: str, shift: int, ratios: Array, bounds: Array, scale32: bool) -> None:
    largest = float(bounds.max())
    if largest > I32_MAX:
        raise RescaleError(subject, f"accumulators reach {largest:.3g}; expected at most 2^31 - 1 in magnitude")
    if shift < SHIFT_MIN:
        raise RescaleError(
            subject, f"scale ratio {float(ratios.max()):.6g} needs shift {shift}; expected a RESCALE shift of 2 to 62"
        )
    scaled = float((bounds * ratios).max())
    if scaled > I32_MAX - 1:
        raise RescaleError(subject, f"scaled values reach {scaled:.3g}; expected at most 2^31 - 1 in magnitude")
    if scale32 and largest >= 2.0 ** (shift - 1):
        raise RescaleError(
            subject, f"accumulators reach {largest:.3g}; expected below 2^{shift - 1} for RESCALE with shift {shift}"
        )


def bias_integers(subject: str, values: Array, params: QuantParams | None, scales: Array) -> Integers:
    """A bias as accumulators of scale input x weight (float64 ``scales`` [channels]).

    Integers whose own scale equals it to within 2**-20 are kept to the bit; others, and float
    values (``params`` None), are rounded to it. Raises RescaleError beyond 32 bits.
    """
    if params is None:
        real = values.astype(np.float64)
    else:
        own = params.scales().astype(np.float64)
        centred: Integers = values.astype(np.int64) - params.zero_points().astype(np.int64)
        if np.all(np.abs(own / scales - 1.0) <= 2.0**-20):
            return centred
        real = centred * own
    integers = np.rint(np.asarray(real / scales, np.float64))
    if np.max(np.abs(integers), initial=0.0) > I32_MAX:
        raise RescaleError(subject, f"bias reaches {np.max(np.abs(integers)):.3g} steps; expected at most 2^31 - 1")
    return np.asarray(integers, np.int64)


@dataclass(frozen=True)
class SumScale:
    """``a * left + b * right`` has the real value of the sum over ``scale``."""

    left: int
    right: int
    scale: float


def sum_scale(left: float, right: float) -> SumScale:
    """Integers of at most 15 bits that bring two scales to one (DESIGN: Add and Sub)."""
    largest = max(left, right)
    return SumScale(
        round(left / largest * (1 << SUM_BITS)), round(right / largest * (1 << SUM_BITS)), largest / (1 << SUM_BITS)
    )


def exp_table(scale: float, bits: int, size: int = 256) -> Integers:
    """``2**bits * exp(-index * scale)`` rounded half to even, [size]; the same on every machine."""
    with decimal.localcontext(decimal.Context(prec=40)):
        unit = decimal.Decimal(1 << bits)
        step = decimal.Decimal(scale)
        return np.array([int((unit * (-step * index).exp()).to_integral_value()) for index in range(size)], np.int64)


_DECIMAL = decimal.Context(prec=40)
_EXP_REACH = 1000
"""Arguments beyond it change no quantized value: exp(-1000) is far below the smallest float32."""


def exp(value: Fraction) -> Fraction:
    """e to the power of ``value``, to 40 digits; the same on every machine."""
    limited = min(max(value, Fraction(-_EXP_REACH)), Fraction(_EXP_REACH))
    with decimal.localcontext(_DECIMAL):
        return Fraction((decimal.Decimal(limited.numerator) / decimal.Decimal(limited.denominator)).exp())


def table(function: Callable[[Fraction], Fraction], source: QuantParams, result: QuantParams) -> Integers:
    """``function`` of every 8-bit value of ``source`` as integers of ``result``, [256] from the lowest value up.

    Computed on exact rationals and rounded once, half to even, as QuantizeLinear rounds.
    """
    scale, step = Fraction(source.scale[0]), Fraction(result.scale[0])
    reals = ((q - source.zero_point[0]) * scale for q in range(source.dtype.low, source.dtype.high + 1))
    low, high = (bound - result.zero_point[0] for bound in (result.dtype.low, result.dtype.high))
    steps = [min(max(round(function(real) / step), low), high) for real in reals]
    return np.array(steps, np.int64) + result.zero_point[0]


def nearest_quotients(dividend: int, divisors: Integers) -> Integers:
    """``dividend / divisors`` rounded to the nearest integer, halves up; exact where they divide."""
    return np.asarray((2 * dividend + divisors) // (2 * divisors), np.int64)


def rounding_shift(values: Integers, shift: Integers | int) -> Integers:
    """Arithmetic right shift rounded half up; ``shift`` broadcasts; 0 leaves the values."""
    shift = np.asarray(shift, np.int64)
    half = np.where(shift > 0, np.int64(1) << np.maximum(shift - 1, 0), 0)
    return np.asarray((values + half) >> shift)


def leading_zeros(values: Integers) -> Integers:
    """Leading zeros of positive values as 32-bit integers."""
    return np.asarray(32 - np.frexp(values.astype(np.float64))[1], np.int64)


RECIPROCAL_NUMERATOR = (1 << 31) - 1
"""Divided by the top 16 bits of a sum: a reciprocal of 16 bits."""


def reciprocal(values: Integers) -> tuple[Integers, Integers]:
    """(r, c) of positive 31-bit values with ``1 / value`` about ``r * 2**(c - 47)``.

    ``c`` is the leading zeros, ``r = (2**31 - 1) // ((value << (c - 1)) >> 15)``: 16 bits.
    """
    zeros = leading_zeros(values)
    return np.asarray(RECIPROCAL_NUMERATOR // ((values << (zeros - 1)) >> 15)), zeros


LERP_BITS = 11
"""Weights between neighbours have denominators up to 2**11: two axes of 8-bit values stay within 31 bits."""


@dataclass(frozen=True, eq=False)
class Lerp:
    """Linear interpolation along an axis of ``size`` elements: ``(x[low] * (d - w) + x[high] * w) / d``.

    ``floors`` are the positions rounded down, which may lie outside the axis: its ends go on there.
    """

    floors: Integers
    weights: Integers
    denominator: int
    size: int

    @property
    def low(self) -> Integers:
        """The element at or before every position."""
        return np.clip(self.floors, 0, self.size - 1)

    @property
    def high(self) -> Integers:
        """The element after every position."""
        return np.clip(self.floors + 1, 0, self.size - 1)


def lerp(positions: Sequence[Fraction], size: int) -> Lerp:
    """Integer weights of real positions: exact where one denominator up to 2**11 serves all, else over 2**11."""
    floors = [math.floor(position) for position in positions]
    rests = [position - whole for position, whole in zip(positions, floors, strict=True)]
    denominator = math.lcm(*(rest.denominator for rest in rests))
    denominator = min(denominator, 1 << LERP_BITS)
    weights = [round(rest * denominator) for rest in rests]
    return Lerp(np.array(floors, np.int64), np.array(weights, np.int64), denominator, size)


def to_tosa(values: Array, dtype: QType) -> Array:
    """8-bit values as TOSA's s8 tensor: u8 bytes flipped in the sign bit, s8 as they are."""
    return (values ^ np.uint8(0x80)).view(np.int8) if dtype is QType.U8 else values


def from_tosa(values: Array, dtype: QType) -> Array:
    """The inverse of ``to_tosa``."""
    return values.view(np.uint8) ^ np.uint8(0x80) if dtype is QType.U8 else values


def tosa_offset(dtype: QType) -> int:
    """What a TOSA s8 value is above the value it stands for: -128 for u8."""
    return -128 if dtype is QType.U8 else 0
