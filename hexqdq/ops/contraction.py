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
WEIGHT_TYPES = (QType.S8,)
BIAS_TYPES = (QType.S32, QType.F32)


@dataclass(frozen=True, eq=False)
class ContractionPlan:
    """Integer constants of ``clamp(rescale(sum((x - zp) * w) + bias) + zp)``.

    ``weights`` are int8 [channels, ...] as [out, K...]; ``bias`` is int64 [channels] within 32 bits;
    zero points and the bounds ``low``, ``high`` are in the types of the unit's tensors.
    """

    weights: Array
    bias: NDArray[np.int64]
    rescale: Rescale
    input_zero_point: int
    output_zero_point: int
    low: int
    high: int


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


def plan(unit: QuantUnit, weights: Array) -> ContractionPlan:
    """The constants of a contraction whose weights are given as int8 [channels, ...].

    Raises RescaleError where the accumulators or the scale ratio leave TOSA's domain.
    """
    x, w, y = params_of(unit, 0), params_of(unit, 1), params_of(unit, -1)
    channels = weights.shape[0]
    scales = x.scales().astype(np.float64)[0] * np.broadcast_to(w.scales().astype(np.float64), (channels,))
    bias = _bias(unit, scales)
    low, high = output_bounds(unit)
    zero_point = x.zero_point[0]
    reach = max(x.dtype.high - zero_point, zero_point - x.dtype.low)
    bounds = np.abs(weights.reshape(channels, -1).astype(np.int64)).sum(axis=1) * reach + np.abs(bias)
    rescale = numerics.rescaler(unit.name, scales / y.scale[0], bounds, y)
    return ContractionPlan(weights, bias, rescale, zero_point, y.zero_point[0], low, high)


def _bias(unit: QuantUnit, scales: NDArray[np.float64]) -> NDArray[np.int64]:
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
