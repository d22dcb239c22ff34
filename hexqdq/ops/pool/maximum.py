"""MaxPool: the largest integers of windows, as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from hexqdq.ops.pool.window import LIMITS, spans_of, windows
from hexqdq.ops.spec import Condition, OpSpec, Trait
from hexqdq.ops.unit import QuantUnit

Array = NDArray[Any]


def maximum_reference(unit: QuantUnit, inputs: Sequence[Array]) -> list[Array]:
    """The largest value of each window; pads never win."""
    spans = spans_of(unit)
    axes = tuple(range(inputs[0].ndim, 2 * inputs[0].ndim - 2))
    return [windows(inputs[0], spans, unit.input(0).dtype.low).max(axis=axes)]


def _same_parameters(unit: QuantUnit) -> str | None:
    before, after = unit.input(0).params, unit.output.params
    if before == after:
        return None
    if before is None or after is None:
        return "a scale on one side only"
    return f"scale {before.scale[0]:.6g} in and {after.scale[0]:.6g} out"


def _per_tensor(unit: QuantUnit) -> str | None:
    params = unit.input(0).params
    return None if params is None or params.is_per_tensor else f"{len(params.scale)} scales"


SPECS = (
    OpSpec(
        op_type="MaxPool",
        trait=Trait.MOVEMENT,
        limits=(
            *LIMITS,
            Condition("input and output must share scale and zero point", _same_parameters),
            Condition("input 0 must have one scale and zero point", _per_tensor),
        ),
        reference=maximum_reference,
        check=spans_of,
        summary="largest value of each window, any pads and strides",
    ),
)
