"""Add of two tensors, and Relu and Clip that stand alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq import numerics
from hexqdq.errors import RescaleError
from hexqdq.numerics import Rescale, SumScale
from hexqdq.ops.contraction import ACTIVATION_TYPES, output_bounds, params_of
from hexqdq.ops.spec import ConstInput, DtypeIn, OpSpec, PerTensor, RankIn, SameDtype, Trait, integers
from hexqdq.ops.unit import QuantUnit

Array = NDArray[Any]

SUM_ERROR = 0.25
"""Steps that bringing two operands to a common scale may move their sum."""


@dataclass(frozen=True)
class SumPlan:
    """Constants of ``clamp(rescale((a - za) * left + (b - zb) * right) + zp)``."""

    scale: SumScale
    rescale: Rescale
    left_zero_point: int
    right_zero_point: int
    output_zero_point: int
    low: int
    high: int


def sum_plan(unit: QuantUnit) -> SumPlan:
    """The integer constants of an Add; raises RescaleError outside TOSA's domain."""
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
    low, high = output_bounds(unit)
    return SumPlan(scale, rescale, a.zero_point[0], b.zero_point[0], y.zero_point[0], low, high)


def add_reference(unit: QuantUnit, inputs: Sequence[Array]) -> list[Array]:
    """Both operands to one scale by integers, one rounding at the end; operands broadcast."""
    constants = sum_plan(unit)
    a, b = operands(unit, inputs)
    left = (integers(a) - constants.left_zero_point) * constants.scale.left
    right = (integers(b) - constants.right_zero_point) * constants.scale.right
    bounds = (constants.low, constants.high)
    return [numerics.requantize(left + right, constants.rescale, params_of(unit, -1), bounds)]


def operands(unit: QuantUnit, inputs: Sequence[Array]) -> list[Array]:
    """The unit's inputs in ONNX order, constants filled in."""
    variable = iter(inputs)
    return [
        unit.constants[t.name] if t.name in unit.constants else next(variable) for t in unit.inputs if t is not None
    ]


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
    return [requantize_reference(clip_plan(unit), integers(inputs[0]), unit)]


def requantize_reference(constants: RequantizePlan, values: NDArray[np.int64], unit: QuantUnit) -> Array:
    """Values to the unit's output, its bounds applied."""
    centred = values - constants.input_zero_point
    return numerics.requantize(centred, constants.rescale, params_of(unit, -1), (constants.low, constants.high))


_UNARY_LIMITS = (
    DtypeIn(0, ACTIVATION_TYPES),
    DtypeIn(-1, ACTIVATION_TYPES),
    SameDtype(),
    PerTensor(0),
    PerTensor(-1),
)

SPECS = (
    OpSpec(
        op_type="Add",
        trait=Trait.ELEMENTWISE,
        limits=(
            *_UNARY_LIMITS,
            DtypeIn(1, ACTIVATION_TYPES),
            PerTensor(1),
            RankIn(0, (0, 1, 2, 3, 4)),
            RankIn(1, (0, 1, 2, 3, 4)),
        ),
        reference=add_reference,
        check=sum_plan,
        data_inputs=(0, 1),
        summary="sum of two tensors of any scales, broadcast",
    ),
    OpSpec(
        op_type="Relu",
        trait=Trait.ELEMENTWISE,
        limits=_UNARY_LIMITS,
        reference=clip_reference,
        check=clip_plan,
        activation=True,
        summary="folded into its producer, or alone as a requantization with a bound",
    ),
    OpSpec(
        op_type="Clip",
        trait=Trait.ELEMENTWISE,
        limits=(*_UNARY_LIMITS, ConstInput(1), ConstInput(2)),
        reference=clip_reference,
        check=clip_plan,
        activation=True,
        summary="folded into its producer, or alone as a requantization with two bounds",
    ),
)
