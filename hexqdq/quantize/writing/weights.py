"""Parameters of weights and biases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq import numerics
from hexqdq.qtypes import QType, QuantParams
from hexqdq.quantize.planning.encodings import MIN_SCALE

Array = NDArray[Any]

BIAS_LIMIT = 1 << 30
"""Largest bias in steps: half of 32 bits, the other half is left for the products."""
CHANNEL_FLOOR = 2.0**-16
"""A channel's scale is at least this share of the tensor's largest: what lies below cannot reach one output step."""


@dataclass(frozen=True, eq=False)
class QuantizedConstant:
    """Integer values and their parameters."""

    values: Array
    params: QuantParams


def quantize_weights(
    weights: Array, axis: int | None, dtype: QType, input_scale: float, bias: Array | None
) -> QuantizedConstant:
    """Symmetric weights, per channel along ``axis`` or with one scale where it is None.

    A channel whose ``bias`` [channels] would pass BIAS_LIMIT steps of input x weight scale gets a
    wider scale; a channel of zeros gets the largest of the others.
    """
    magnitudes = _magnitudes(weights, axis)
    largest = float(magnitudes.max(initial=0.0)) or 1.0
    usable = np.where(magnitudes > 0, np.maximum(magnitudes, largest * CHANNEL_FLOOR), largest)
    scales = np.maximum(usable / dtype.high, MIN_SCALE)
    if bias is not None:
        needed = np.abs(bias.astype(np.float64)) / (input_scale * BIAS_LIMIT)
        scales = np.maximum(scales, needed if axis is not None else needed.max(initial=0.0))
    params = QuantParams.per_channel(dtype, scales.astype(np.float32), np.zeros(scales.shape, np.int64), axis or 0)
    if axis is None:
        params = QuantParams.per_tensor(dtype, float(scales[0]))
    return QuantizedConstant(numerics.quantize(weights, params), params)


def _magnitudes(weights: Array, axis: int | None) -> NDArray[np.float64]:
    """The largest absolute weight per channel [channels], of the whole tensor as [1]."""
    absolute = np.abs(weights.astype(np.float64))
    if axis is None:
        return np.array([absolute.max(initial=0.0)], np.float64)
    others = tuple(index for index in range(weights.ndim) if index != axis)
    return np.asarray(absolute.max(axis=others, initial=0.0))


def quantize_bias(bias: Array, input_scale: float, weights: QuantParams) -> QuantizedConstant:
    """The bias [channels] as s32 of scale input x weight, per channel where the weights are."""
    scales = np.float32(input_scale) * weights.scales()
    zeros = np.zeros(scales.shape, np.int64)
    params = QuantParams.per_channel(QType.S32, scales, zeros, 0)
    if weights.is_per_tensor:
        params = QuantParams.per_tensor(QType.S32, float(scales[0]))
    return QuantizedConstant(numerics.quantize(bias, params), params)


def quantize_constant(values: Array, params: QuantParams) -> QuantizedConstant:
    """A constant activation."""
    return QuantizedConstant(numerics.quantize(values, params), params)
