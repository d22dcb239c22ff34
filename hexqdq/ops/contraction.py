"""What Conv, Gemm and MatMul with constant weights share: the integer constants of a contraction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq import numerics
from hexqdq.errors import RescaleError
from hexqdq.numerics import Rescale
from hexqdq.ops.unit import QuantUnit
from hexqdq.qtypes import QType, QuantParams

Array = NDArray[Any]

ACTIVATION_TYPES = (QType.U8, QType.S8)
WEIGHT_TYPES = (QType.U8, QType.S8)
WEIGHT_SPAN = 256
"""Integers that weights may take once their zero points are subtracted: what 8 bits with one zero point can hold."""
BIAS_TYPES = (QType.S32, QType.F32)


@dataclass(frozen=True, eq=False)
class ContractionPlan:
    """Integer constants of ``clamp(rescale(sum((x - zp) * (w - weight_zero_point)) + bias) + zp)``.

    ``weights`` are int8 [channels, ...] as [out, K...] over one ``weight_zero_point``, which is 0
    wherever that fits; ``bias`` is int64 [channels] within 32 bits; the other zero points and the
    bounds ``low``, ``high`` are in the types of the unit's tensors.
    """

    weights: NDArray[np.int8]
    weight_zero_point: int
    bias: NDArray[np.int64]
    rescale: Rescale
    input_zero_point: int
    output_zero_point: int
    low: int
    high: int

    @property
    def centred(self) -> NDArray[np.int64]:
        """The weights less their zero point."""
        return self.weights.astype(np.int64) - self.weight_zero_point


def params_of(unit: QuantUnit, index: int) -> QuantParams:
    """The parameters of an input (the output as -1); raises RescaleError where there are none."""
    tensor = unit.output if index < 0 else unit.input(index)
    if tensor.params is None:
        raise RescaleError(unit.name, f"tensor {tensor.name!r} has no scale; expected quantized data")
    return tensor.params


def output_bounds(unit: QuantUnit) -> tuple[int, int]:
    """The integer bounds of the unit's output: its clamp inside its type."""
    params = params_of(unit, -1)
    if unit.clamp is None:
        return params.dtype.low, params.dtype.high
    return numerics.clamp_bounds(unit.clamp.low, unit.clamp.high, params)


def centred_weights(unit: QuantUnit, weights: Array) -> NDArray[np.int64]:
    """Weights [channels, ...] as stored, less their zero points, one or one a channel."""
    zero_points = params_of(unit, 1).zero_points().astype(np.int64)
    return weights.astype(np.int64) - zero_points.reshape(-1, *(1,) * (weights.ndim - 1))


def common_zero_point(centred: NDArray[np.int64]) -> int:
    """The zero point nearest to 0 over which the centred weights are s8 values."""
    lowest, highest = int(centred.min(initial=0)), int(centred.max(initial=0))
    assert highest - lowest < WEIGHT_SPAN
    return max(QType.S8.low - lowest, 0) if lowest < QType.S8.low else min(QType.S8.high - highest, 0)


def plan(unit: QuantUnit, weights: Array) -> ContractionPlan:
    """The constants of a contraction whose weights are given as stored, in the order [channels, ...].

    Raises RescaleError where the accumulators or the scale ratio leave TOSA's domain.
    """
    x, w, y = params_of(unit, 0), params_of(unit, 1), params_of(unit, -1)
    channels = weights.shape[0]
    scales = x.scales().astype(np.float64)[0] * np.broadcast_to(w.scales().astype(np.float64), (channels,))
    bias = bias_of(unit, scales)
    low, high = output_bounds(unit)
    centred = centred_weights(unit, weights)
    bounds = np.abs(centred.reshape(channels, -1)).sum(axis=1) * reach_of(x) + np.abs(bias)
    rescale = numerics.rescaler(unit.name, scales / y.scale[0], bounds, y)
    shift = common_zero_point(centred)
    stored = (centred + shift).astype(np.int8)
    return ContractionPlan(stored, shift, bias, rescale, x.zero_point[0], y.zero_point[0], low, high)


def reach_of(params: QuantParams) -> int:
    """The largest magnitude of an integer less its zero point."""
    return max(params.dtype.high - params.zero_point[0], params.zero_point[0] - params.dtype.low)


def bias_of(unit: QuantUnit, scales: NDArray[np.float64]) -> NDArray[np.int64]:
    """Input 2 as accumulators of the real ``scales`` [channels], zeros where it is absent."""
    if not unit.has_input(2):
        return np.zeros(scales.shape, np.int64)
    values = numerics.bias_integers(unit.name, unit.constant(2).reshape(-1), unit.input(2).params, scales)
    return np.broadcast_to(values, scales.shape)


def finish(accumulators: NDArray[np.int64], constants: ContractionPlan, unit: QuantUnit, axis: int) -> Array:
    """Accumulators without bias to the unit's output, channels along ``axis``."""
    shape = [1] * accumulators.ndim
    shape[axis] = -1
    biased = accumulators + constants.bias.reshape(shape)
    bounds = (constants.low, constants.high)
    return numerics.requantize(biased, constants.rescale, params_of(unit, -1), bounds, axis)


def exact_matmul(left: Array, right: Array) -> NDArray[np.int64]:
    """Integer matrix product through float64, exact while sums stay below 2**53."""
    return (left.astype(np.float64) @ right.astype(np.float64)).astype(np.int64)
