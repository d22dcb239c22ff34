"""MaxPool: the largest integers of windows, as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from hexqdq import numerics
from hexqdq.ops.contraction import output_bounds
from hexqdq.ops.movement.limits import DATA_LIMITS, scales_differ
from hexqdq.ops.pool.window import LIMITS, spans_of, windows
from hexqdq.ops.spec import Condition, OpSpec
from hexqdq.ops.traits import Trait
from hexqdq.ops.unit import QuantUnit

Array = NDArray[Any]


def bounds_of(unit: QuantUnit) -> tuple[int, int] | None:
    """The bounds of an activation after the pool, None where there is none."""
    return None if unit.clamp is None else output_bounds(unit)


def maximum_reference(unit: QuantUnit, inputs: Sequence[Array]) -> list[Array]:
    """The largest value of each window, inside the bounds; pads never win."""
    axes = tuple(range(inputs[0].ndim, 2 * inputs[0].ndim - 2))
    largest = windows(inputs[0], spans_of(unit), unit.input(0).dtype.low).max(axis=axes)
    bounds = bounds_of(unit)
    return [largest if bounds is None else numerics.bounded(largest, bounds)]


def _same_parameters(unit: QuantUnit) -> str | None:
    return scales_differ(unit.input(0), unit.output)


SPECS = (
    OpSpec(
        op_type="MaxPool",
        trait=Trait.MOVEMENT,
        limits=(
            *LIMITS,
            *DATA_LIMITS[2:],
            Condition("input and output must share scale and zero point", _same_parameters),
        ),
        reference=maximum_reference,
        check=bounds_of,
        summary="largest value of each window, any pads and strides",
    ),
)
