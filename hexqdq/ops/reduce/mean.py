"""ReduceMean and GlobalAveragePool: sums over whole axes in 32 bits with one RESCALE."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from hexqdq import numerics
from hexqdq.ops.contraction import params_of
from hexqdq.ops.elementwise.clip import RequantizePlan, requantize_plan
from hexqdq.ops.elementwise.operands import UNARY_LIMITS
from hexqdq.ops.spec import ConstInput, OpSpec, RankIn, integers
from hexqdq.ops.traits import Trait
from hexqdq.ops.unit import QuantUnit

Array = NDArray[Any]


def axes_of(unit: QuantUnit) -> tuple[int, ...]:
    """The axes that are averaged, in order: all spatial ones in a pool.

    ReduceMean has them as an attribute or, since opset 18, as constant input 1; without any it
    takes every axis, or with ``noop_with_empty_axes`` none.
    """
    rank = len(unit.input(0).shape)
    if unit.op_type != "ReduceMean":
        return tuple(range(2, rank))
    given = unit.constant(1).reshape(-1) if unit.is_constant(1) else unit.attributes.get("axes", ())
    axes = tuple(sorted({int(axis) % rank for axis in given}))  # type: ignore[union-attr]
    if axes or unit.attributes.get("noop_with_empty_axes", 0):
        return axes
    return tuple(range(rank))


def mean_plan(unit: QuantUnit) -> RequantizePlan:
    """The integer constants; ``input_zero_point`` is per element."""
    return requantize_plan(unit, math.prod(unit.input(0).shape[axis] for axis in axes_of(unit)))


def mean_reference(unit: QuantUnit, inputs: Sequence[Array]) -> list[Array]:
    """``clamp(rescale(sum(x - zp)) + zp)``."""
    constants = mean_plan(unit)
    total = (integers(inputs[0]) - constants.input_zero_point).sum(axis=axes_of(unit), keepdims=True)
    bounds = (constants.low, constants.high)
    return [numerics.requantize(total, constants.rescale, params_of(unit, -1), bounds).reshape(unit.output.shape)]


SPECS = (
    OpSpec(
        op_type="ReduceMean",
        trait=Trait.ELEMENTWISE,
        limits=(*UNARY_LIMITS, RankIn(0, (1, 2, 3, 4, 5, 6)), ConstInput(1)),
        reference=mean_reference,
        check=mean_plan,
        summary="mean over any axes",
    ),
    OpSpec(
        op_type="GlobalAveragePool",
        trait=Trait.ELEMENTWISE,
        limits=(*UNARY_LIMITS, RankIn(0, (3, 4, 5))),
        reference=mean_reference,
        check=mean_plan,
        summary="mean of each channel",
    ),
)
