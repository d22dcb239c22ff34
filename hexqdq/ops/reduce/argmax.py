"""ArgMax: the index of the largest value, which quantization does not move."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq.ops.contraction import ACTIVATION_TYPES
from hexqdq.ops.spec import Condition, DtypeIn, OpSpec, RankIn, axis_of
from hexqdq.ops.traits import Trait
from hexqdq.ops.unit import QuantUnit
from hexqdq.qtypes import QType

Array = NDArray[Any]

LONGEST_AXIS = 1 << 23
"""Value and index share 32 bits where the index is searched for."""


def takes_last(unit: QuantUnit) -> bool:
    """Whether the last of equal values counts, not the first."""
    return bool(unit.attributes.get("select_last_index", 0))


def argmax_reference(unit: QuantUnit, inputs: Sequence[Array]) -> list[Array]:
    """Indices along the axis; scales are positive, so integers compare as the values they stand for."""
    axis = axis_of(unit, 0)
    values = inputs[0]
    if not takes_last(unit):
        return [values.argmax(axis=axis).reshape(unit.output.shape)]
    from_end = np.flip(values, axis).argmax(axis=axis)
    return [(values.shape[axis] - 1 - from_end).reshape(unit.output.shape)]


def _axis_length(unit: QuantUnit) -> str | None:
    length = unit.input(0).shape[axis_of(unit, 0)]
    return None if 1 <= length <= LONGEST_AXIS else f"{length} elements"


def _per_tensor(unit: QuantUnit) -> str | None:
    params = unit.input(0).params
    return None if params is None or params.is_per_tensor else f"{len(params.scale)} scales"


SPECS = (
    OpSpec(
        op_type="ArgMax",
        trait=Trait.INDEX,
        limits=(
            DtypeIn(0, ACTIVATION_TYPES),
            DtypeIn(-1, (QType.S64,)),
            RankIn(0, (1, 2, 3, 4)),
            Condition("data must have one scale and zero point a tensor", _per_tensor),
            Condition("the axis of ArgMax must have 1 to 8388608 elements", _axis_length),
        ),
        reference=argmax_reference,
        check=takes_last,
        summary="index of the largest value, the first or the last of equal ones",
    ),
)
