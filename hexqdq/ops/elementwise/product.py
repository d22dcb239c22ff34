"""Mul of two tensors, and PRelu, whose slopes are a second tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq import numerics
from hexqdq.numerics import IDENTITY, Rescale
from hexqdq.ops.contraction import output_bounds, params_of
from hexqdq.ops.elementwise.operands import BINARY_LIMITS, operands
from hexqdq.ops.spec import Condition, OpSpec, integers
from hexqdq.ops.traits import Trait
from hexqdq.ops.unit import QuantUnit

Array = NDArray[Any]


@dataclass(frozen=True)
class ProductPlan:
    """Constants of ``clamp(rescale((a - za) * (b - zb)) + zp)``."""

    rescale: Rescale
    left_zero_point: int
    right_zero_point: int
    output_zero_point: int
    low: int
    high: int


def product_plan(unit: QuantUnit) -> ProductPlan:
    """The integer constants of a Mul; raises RescaleError outside TOSA's domain."""
    a, b, y = params_of(unit, 0), params_of(unit, 1), params_of(unit, -1)
    ratio = a.scale[0] * b.scale[0] / y.scale[0]
    rescale = numerics.rescaler(unit.name, np.array([ratio]), np.array([255 * 255]), y)
    low, high = output_bounds(unit)
    return ProductPlan(rescale, a.zero_point[0], b.zero_point[0], y.zero_point[0], low, high)


def product_reference(unit: QuantUnit, inputs: Sequence[Array]) -> list[Array]:
    """The integers' product, one rounding; operands broadcast."""
    constants = product_plan(unit)
    a, b = operands(unit, inputs)
    product = (integers(a) - constants.left_zero_point) * (integers(b) - constants.right_zero_point)
    return [numerics.requantize(product, constants.rescale, params_of(unit, -1), (constants.low, constants.high))]


@dataclass(frozen=True)
class SlopePlan:
    """Constants of ``clamp(positive(max(x - zx, 0)) + negative(min(x - zx, 0) * (slope - zs)) + zp)``.

    One of the two is 0, so every element is rounded once; ``rescale`` only adds the zero point.
    """

    positive: Rescale
    negative: Rescale
    input_zero_point: int
    slope_zero_point: int
    output_zero_point: int
    low: int
    high: int
    rescale: Rescale = IDENTITY


def slope_plan(unit: QuantUnit) -> SlopePlan:
    """The integer constants of a PRelu; raises RescaleError outside TOSA's domain."""
    x, slope, y = params_of(unit, 0), params_of(unit, 1), params_of(unit, -1)
    ratio = x.scale[0] / y.scale[0]
    positive = numerics.rescaler(unit.name, np.array([ratio]), np.array([255]), y)
    negative = numerics.rescaler(unit.name, np.array([ratio * slope.scale[0]]), np.array([255 * 255]), y)
    low, high = output_bounds(unit)
    return SlopePlan(positive, negative, x.zero_point[0], slope.zero_point[0], y.zero_point[0], low, high)


def slope_reference(unit: QuantUnit, inputs: Sequence[Array]) -> list[Array]:
    """Above the zero point to the output's scale, below it times the slope."""
    constants = slope_plan(unit)
    x, slope = operands(unit, inputs)
    centred = integers(x) - constants.input_zero_point
    above = constants.positive.apply(np.maximum(centred, 0))
    below = constants.negative.apply(np.minimum(centred, 0) * (integers(slope) - constants.slope_zero_point))
    bounds = (constants.low, constants.high)
    return [numerics.requantize(above + below, constants.rescale, params_of(unit, -1), bounds)]


def _slopes_fit(unit: QuantUnit) -> str | None:
    data, slope = unit.input(0).shape, unit.input(1).shape
    sizes = zip(reversed(data), reversed(slope), strict=False)
    if len(slope) <= len(data) and all(own in (1, size) for size, own in sizes):
        return None
    return f"slopes {'x'.join(map(str, slope))} on {'x'.join(map(str, data))}"


SPECS = (
    OpSpec(
        op_type="Mul",
        trait=Trait.ELEMENTWISE,
        limits=BINARY_LIMITS,
        reference=product_reference,
        check=product_plan,
        data_inputs=(0, 1),
        pointwise=True,
        summary="product of two tensors of any scales, broadcast",
    ),
    OpSpec(
        op_type="PRelu",
        trait=Trait.ELEMENTWISE,
        limits=(*BINARY_LIMITS, Condition("the slopes must broadcast to input 0", _slopes_fit)),
        reference=slope_reference,
        check=slope_plan,
        data_inputs=(0, 1),
        pointwise=True,
        summary="values below 0 times a slope of their own, per channel or computed",
    ),
)
