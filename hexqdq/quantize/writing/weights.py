"""Parameters of weights and biases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq import numerics
from hexqdq.qtypes import QType, QuantParams
from hexqdq.quantize.planning.encodings import MIN_SCALE, NARROW_BITS

Array = NDArray[Any]
Reals = NDArray[np.float64]

BIAS_LIMIT = 1 << 30
"""Largest bias in steps: half of 32 bits, the other half is left for the products."""
CHANNEL_FLOOR = 2.0**-16
"""A channel's scale is at least this share of the tensor's largest: what lies below cannot reach one output step."""
SHARES, LEAST_SHARE = 21, 0.5
"""Scales tried for 4-bit weights, from the one that reaches the largest weight down to half of it."""


@dataclass(frozen=True, eq=False)
class QuantizedConstant:
    """Integer values and their parameters."""

    values: Array
    params: QuantParams


def quantize_weights(
    weights: Array, axis: int | None, dtype: QType, input_scale: float, bias: Array | None, block: int = 0
) -> QuantizedConstant:
    """Weights with a scale per channel along ``axis``, one scale where it is None, or one per block.

    Signed types are symmetric; u8 covers [low, high] and 0. With a ``block`` the weights are a matrix, and
    so many elements of a channel share a scale. A channel whose ``bias`` [channels] would pass BIAS_LIMIT
    steps of input x weight scale gets a wider scale, unless it has blocks, whose bias has a scale of its
    own; a channel of zeros gets the largest of the others. 4-bit scales clip where that errs least.
    """
    split = _Split(axis, block)
    lows, highs = np.minimum(split.over(weights, np.min), 0.0), np.maximum(split.over(weights, np.max), 0.0)
    reach = np.maximum(-lows, highs) if dtype.is_signed else highs - lows
    largest = float(reach.max(initial=0.0)) or 1.0
    usable = np.where(reach > 0, np.maximum(reach, largest * CHANNEL_FLOOR), largest)
    scales = np.maximum(usable / dtype.high, MIN_SCALE)
    if dtype.bits < NARROW_BITS:
        scales = scales * _clipping(weights, scales, split, dtype)
    if bias is not None and not block:
        needed = np.abs(bias.astype(np.float64)) / (input_scale * BIAS_LIMIT)
        scales = np.maximum(scales, needed if axis is not None else needed.max(initial=0.0))
    zeros = np.zeros(scales.shape, np.int64) if dtype.is_signed else numerics.zero_points(lows, scales, dtype)
    params = split.params(dtype, scales, zeros)
    return QuantizedConstant(numerics.quantize(weights, params), params)


@dataclass(frozen=True)
class _Split:
    """Which weights share a scale: those of a channel along ``axis``, all, or a block of a matrix's channel."""

    axis: int | None
    block: int

    def over(self, values: Array, reduce: Callable[..., Array]) -> Reals:
        """What ``reduce`` makes of the weights of each scale, in the shape of the scales."""
        if not values.size:
            return np.zeros(1 if self.axis is None else values.shape[self.axis])
        if self.block:
            assert self.axis is not None
            along = 1 - self.axis
            blocks = np.stack(np.split(values, values.shape[along] // self.block, along), along)
            return np.asarray(reduce(blocks, axis=along + 1), np.float64)
        if self.axis is None:
            return np.asarray(reduce(values), np.float64).reshape(1)
        others = tuple(index for index in range(values.ndim) if index != self.axis)
        return np.asarray(reduce(values, axis=others), np.float64)

    def params(self, dtype: QType, scales: Reals, zeros: NDArray[np.int64]) -> QuantParams:
        if self.axis is None:
            return QuantParams.per_tensor(dtype, float(scales[0]), int(zeros[0]))
        if self.block:
            return QuantParams.per_block(dtype, scales.astype(np.float32), zeros, 1 - self.axis, self.block)
        return QuantParams.per_channel(dtype, scales.astype(np.float32), zeros, self.axis)


def _clipping(weights: Array, scales: Reals, split: _Split, dtype: QType) -> Reals:
    """The shares of symmetric scales that give the least squared error of rounding."""
    best, errors = np.ones(scales.shape), np.full(scales.shape, np.inf)
    for share in np.linspace(1.0, LEAST_SHARE, SHARES):
        params = split.params(dtype, np.maximum(scales * share, MIN_SCALE), np.zeros(scales.shape, np.int64))
        held = numerics.dequantize(numerics.quantize(weights, params), params)
        found = split.over((held - weights).astype(np.float64) ** 2, np.sum)
        best, errors = np.where(found < errors, share, best), np.minimum(found, errors)
    return best


def quantize_bias(bias: Array, input_scale: float, weights: QuantParams) -> QuantizedConstant:
    """The bias [channels] as s32 of scale input x weight, per channel where the weights are.

    Weights in blocks have no one scale: the bias gets the largest of its channel's, wider where it would
    pass BIAS_LIMIT steps.
    """
    scales = np.float32(input_scale) * weights.scales()
    if weights.block:
        widest = scales.max(axis=weights.axis)
        scales = np.maximum(widest, (np.abs(bias.astype(np.float64)) / BIAS_LIMIT)).astype(np.float32)
    zeros = np.zeros(scales.shape, np.int64)
    params = QuantParams.per_channel(QType.S32, scales, zeros, 0)
    if weights.is_per_tensor:
        params = QuantParams.per_tensor(QType.S32, float(scales[0]))
    return QuantizedConstant(numerics.quantize(bias, params), params)


def quantize_constant(values: Array, params: QuantParams) -> QuantizedConstant:
    """A constant activation."""
    return QuantizedConstant(numerics.quantize(values, params), params)
