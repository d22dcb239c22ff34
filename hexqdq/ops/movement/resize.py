"""Resize: nearest copies elements, linear weighs neighbours by integers and rounds once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq import numerics
from hexqdq.errors import QuantizationError
from hexqdq.numerics import Lerp, Rescale
from hexqdq.ops.contraction import output_bounds, params_of
from hexqdq.ops.movement.coordinates import EXACT, NEAREST, Axis, exact_positions, nearest
from hexqdq.ops.movement.limits import DATA_LIMITS, scales_differ
from hexqdq.ops.movement.picks import Picks, axes_of, picked
from hexqdq.ops.spec import AttributeIn, Condition, ConstInput, OpSpec, RankIn, integers
from hexqdq.ops.traits import Trait
from hexqdq.ops.unit import QuantUnit

Array = NDArray[Any]

MOST_LINEAR_AXES = 2


def is_linear(unit: QuantUnit) -> bool:
    """Whether elements are weighed rather than copied."""
    return unit.attributes.get("mode", "nearest") == "linear"


def axes(unit: QuantUnit) -> tuple[Axis, ...]:
    """Every axis of the input with its scale; those that the model does not name stay whole.

    All of them do where no size changes, whatever the scales: the runtime copies then.
    """
    before, after = unit.input(0).shape, unit.output.shape
    named = unit.attributes.get("axes")
    positions = axes_of(named if isinstance(named, tuple) else None, len(before))  # type: ignore[arg-type]
    result = [Axis.of_size(old, new) for old, new in zip(before, after, strict=True)]
    if before != after and unit.has_input(2) and unit.constant(2).size:
        for axis, scale in zip(positions, unit.constant(2).reshape(-1), strict=True):
            result[axis] = Axis.of_scale(before[axis], after[axis], float(scale))
    return tuple(result)


def _transformation(unit: QuantUnit) -> str:
    return str(unit.attributes.get("coordinate_transformation_mode", "half_pixel"))


def nearest_picks(unit: QuantUnit) -> Picks:
    """The element that every output element copies, per axis."""
    mode = str(unit.attributes.get("nearest_mode", "round_prefer_floor"))
    return tuple(nearest(axis, _transformation(unit), mode) for axis in axes(unit))


@dataclass(frozen=True, eq=False)
class LinearPlan:
    """Constants of ``clamp(rescale(weighed sum of (x - zp)) + zp)``; ``lerps`` holds None for whole axes."""

    lerps: tuple[Lerp | None, ...]
    rescale: Rescale
    input_zero_point: int
    output_zero_point: int
    low: int
    high: int


def linear_plan(unit: QuantUnit) -> LinearPlan:
    """The integer weights along each axis and the RESCALE that divides by their denominators."""
    x, y = params_of(unit, 0), params_of(unit, -1)
    lerps = tuple(_lerp(axis, _transformation(unit)) for axis in axes(unit))
    denominator = 1
    for lerp in lerps:
        denominator *= lerp.denominator if lerp is not None else 1
    ratio = np.array([x.scale[0] / (y.scale[0] * denominator)])
    rescale = numerics.rescaler(unit.name, ratio, np.array([255.0 * denominator]), y)
    low, high = output_bounds(unit)
    return LinearPlan(lerps, rescale, x.zero_point[0], y.zero_point[0], low, high)


def _lerp(axis: Axis, transformation: str) -> Lerp | None:
    return None if axis.is_whole else numerics.lerp(exact_positions(axis, transformation), axis.before)


def reference(unit: QuantUnit, inputs: Sequence[Array]) -> list[Array]:
    """Copies, or per axis ``x[low] * (denominator - weight) + x[high] * weight`` and one RESCALE."""
    if not is_linear(unit):
        return [picked(inputs[0], nearest_picks(unit))]
    constants = linear_plan(unit)
    total = integers(inputs[0]) - constants.input_zero_point
    for axis, lerp in enumerate(constants.lerps):
        if lerp is not None:
            weight = lerp.weights.reshape([-1 if i == axis else 1 for i in range(total.ndim)])
            low, high = np.take(total, lerp.low, axis), np.take(total, lerp.high, axis)
            total = low * (lerp.denominator - weight) + high * weight
    bounds = (constants.low, constants.high)
    return [numerics.requantize(total, constants.rescale, params_of(unit, -1), bounds)]


def check(unit: QuantUnit) -> None:
    """Raises QuantizationError where the scales do not give the output's shape or leave TOSA's domain."""
    for axis in axes(unit):
        if axis.exact <= 0 or not axis.after:
            raise QuantizationError(unit.name, f"scale {axis.scale:g} from {axis.before} to {axis.after} elements")
    if is_linear(unit):
        linear_plan(unit)


def _parameters(unit: QuantUnit) -> str | None:
    if is_linear(unit):
        return None
    if unit.clamp is not None:
        return f"bounds {unit.clamp.low:g} to {unit.clamp.high:g}"
    return scales_differ(unit.input(0), unit.output)


def _weighs_integers(unit: QuantUnit) -> str | None:
    return "bare integers" if is_linear(unit) and unit.input(0).params is None else None


def _resized(unit: QuantUnit) -> str | None:
    pairs = zip(unit.input(0).shape, unit.output.shape, strict=True)
    count = sum(before != after for before, after in pairs)
    return f"{count} resized axes" if is_linear(unit) and count > MOST_LINEAR_AXES else None


SPECS = (
    OpSpec(
        op_type="Resize",
        trait=Trait.MOVEMENT,
        limits=(
            *DATA_LIMITS,
            RankIn(0, (1, 2, 3, 4, 5)),
            ConstInput(2),
            ConstInput(3),
            AttributeIn("mode", ("nearest", "linear")),
            AttributeIn("coordinate_transformation_mode", tuple(EXACT)),
            AttributeIn("nearest_mode", tuple(NEAREST)),
            AttributeIn("antialias", (0,)),
            AttributeIn("keep_aspect_ratio_policy", ("stretch",)),
            Condition("nearest copies: input and output must share scale and zero point", _parameters),
            Condition("linear needs quantized data", _weighs_integers),
            Condition("linear resizes at most two axes", _resized),
        ),
        reference=reference,
        check=check,
        summary="nearest as copies; linear as integer weights along each axis with one rounding, any output scale",
    ),
)
