"""Add and Sub of two tensors of any scales."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq import numerics
from hexqdq.errors import RescaleError
from hexqdq.numerics import Rescale, SumScale
from hexqdq.ops.contraction import output_bounds, params_of
from hexqdq.ops.elementwise.operands import BINARY_LIMITS, operands
from hexqdq.ops.spec import OpSpec, integers
from hexqdq.ops.traits import Trait
from hexqdq.ops.unit import QuantUnit

Array = NDArray[Any]

SUM_ERROR = 0.25
"""Steps that bringing two operands to a common scale may move their sum."""


@dataclass(frozen=True)
class SumPlan:
    """Constants of ``clamp(rescale((a - za) * left + (b - zb) * right) + zp)``; ``right`` is below 0 in a Sub."""

    scale: SumScale
    rescale: Rescale
    left_zero_point: int
    right_zero_point: int
    output_zero_point: int
    low: int
    high: int


def sum_plan(unit: QuantUnit) -> SumPlan:
    """The integer constants of an Add or Sub; raises RescaleError outside TOSA's domain."""
    a, b, y = params_of(unit, 0), params_of(unit, 1), params_of(unit, -1)
    scale = numerics.sum_scale(a.scale[0], b.scale[0])
    error = 255 * scale.scale / y.scale[0]
    if error > SUM_ERROR:
        raise RescaleError(
            unit.name,
            f"input scales {a.scale[0]:.6g} and {b.scale[0]:.6g} against output scale {y.scale[0]:.6g}"
            f" leave an error of {error:.3g} steps; expected at most {SUM_ERROR}",
        )
    bound = 255 * (scale.left + scale.right)
    rescale = numerics.rescaler(unit.name, np.array([scale.scale / y.scale[0]]), np.array([bound]), y)
    if unit.op_type == "Sub":
        scale = SumScale(scale.left, -scale.right, scale.scale)
    low, high = output_bounds(unit)
    return SumPlan(scale, rescale, a.zero_point[0], b.zero_point[0], y.zero_point[0], low, high)


def sum_reference(unit: QuantUnit, inputs: Sequence[Array]) -> list[Array]:
    """Both operands to one scale by integers, one rounding at the end; operands broadcast."""
    constants = sum_plan(unit)
    a, b = operands(unit, inputs)
    left = (integers(a) - constants.left_zero_point) * constants.scale.left
    right = (integers(b) - constants.right_zero_point) * constants.scale.right
    bounds = (constants.low, constants.high)
    return [numerics.requantize(left + right, constants.rescale, params_of(unit, -1), bounds)]


SPECS = (
    OpSpec(
        op_type="Add",
        trait=Trait.ELEMENTWISE,
        limits=BINARY_LIMITS,
        reference=sum_reference,
        check=sum_plan,
        data_inputs=(0, 1),
        pointwise=True,
        summary="sum of two tensors of any scales, broadcast",
    ),
    OpSpec(
        op_type="Sub",
        trait=Trait.ELEMENTWISE,
        limits=BINARY_LIMITS,
        reference=sum_reference,
        check=sum_plan,
        data_inputs=(0, 1),
        pointwise=True,
        summary="difference of two tensors of any scales, broadcast",
    ),
)
