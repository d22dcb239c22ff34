"""Requantization, with bounds: Relu and Clip that stand alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq import numerics
from hexqdq.errors import RescaleError
from hexqdq.numerics import Rescale
from hexqdq.ops.contraction import output_bounds, params_of
from hexqdq.ops.elementwise.operands import UNARY_LIMITS
from hexqdq.ops.spec import ConstInput, OpSpec, integers
from hexqdq.ops.traits import Trait
from hexqdq.ops.unit import QuantUnit

Array = NDArray[Any]


@dataclass(frozen=True)
class RequantizePlan:
    """Constants of ``clamp(rescale(x - zp_in) + zp_out)``."""

    rescale: Rescale
    input_zero_point: int
    output_zero_point: int
    low: int
    high: int


def requantize_plan(unit: QuantUnit, count: int = 1) -> RequantizePlan:
    """From the scale of input 0, summed over ``count`` elements and averaged, to the output's."""
    x, y = params_of(unit, 0), params_of(unit, -1)
    ratio = x.scale[0] / (y.scale[0] * count)
    rescale = numerics.rescaler(unit.name, np.array([ratio]), np.array([255 * count]), y)
    low, high = output_bounds(unit)
    return RequantizePlan(rescale, x.zero_point[0], y.zero_point[0], low, high)


def clip_plan(unit: QuantUnit) -> RequantizePlan:
    """A lone Relu or Clip: the unit carries its bounds as ``clamp``."""
    if unit.clamp is None:
        raise RescaleError(unit.name, f"{unit.op_type} without constant bounds; expected numbers")
    return requantize_plan(unit)


def clip_reference(unit: QuantUnit, inputs: Sequence[Array]) -> list[Array]:
    """``clamp(rescale(x - zp) + zp)``."""
    constants = clip_plan(unit)
    centred = integers(inputs[0]) - constants.input_zero_point
    return [numerics.requantize(centred, constants.rescale, params_of(unit, -1), (constants.low, constants.high))]


SPECS = (
    OpSpec(
        op_type="Relu",
        trait=Trait.ELEMENTWISE,
        limits=UNARY_LIMITS,
        reference=clip_reference,
        check=clip_plan,
        activation=True,
        pointwise=True,
        summary="folded into its producer, or alone as a requantization with a bound",
    ),
    OpSpec(
        op_type="Clip",
        trait=Trait.ELEMENTWISE,
        limits=(*UNARY_LIMITS, ConstInput(1), ConstInput(2)),
        reference=clip_reference,
        check=clip_plan,
        activation=True,
        pointwise=True,
        summary="folded into its producer, or alone as a requantization with two bounds",
    ),
)
