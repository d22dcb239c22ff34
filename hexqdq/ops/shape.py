"""Data movements: Reshape, Flatten, Transpose. They copy integers and change none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq.errors import QuantizationError
from hexqdq.ops.contraction import ACTIVATION_TYPES
from hexqdq.ops.conv import ints
from hexqdq.ops.spec import Condition, ConstInput, DtypeIn, OpSpec, RankIn, SameDtype, Trait
from hexqdq.ops.unit import QuantUnit

Array = NDArray[Any]


def permutation(unit: QuantUnit) -> tuple[int, ...]:
    """The axes of a Transpose; reversed where none are given."""
    rank = len(unit.input(0).shape)
    return ints(unit, "perm", tuple(reversed(range(rank))))


def reshape_reference(unit: QuantUnit, inputs: Sequence[Array]) -> list[Array]:
    """The elements in row-major order under the output's shape."""
    return [inputs[0].reshape(unit.output.shape)]


def transpose_reference(unit: QuantUnit, inputs: Sequence[Array]) -> list[Array]:
    """Axes permuted."""
    return [np.ascontiguousarray(inputs[0].transpose(permutation(unit)))]


def check(unit: QuantUnit) -> None:
    """Raises QuantizationError where the element count changes."""
    if unit.input(0).size != unit.output.size:
        raise QuantizationError(
            unit.name, f"{unit.input(0).size} elements in, {unit.output.size} out; expected as many of each"
        )


def _same_parameters(unit: QuantUnit) -> str | None:
    before, after = unit.input(0).params, unit.output.params
    if before is None or after is None or before == after:
        return None
    return f"scale {before.scale[0]:.6g} in and {after.scale[0]:.6g} out"


def _per_tensor(unit: QuantUnit) -> str | None:
    params = unit.input(0).params
    return None if params is None or params.is_per_tensor else f"{len(params.scale)} scales"


LIMITS = (
    DtypeIn(0, ACTIVATION_TYPES),
    SameDtype(),
    Condition("input and output must share scale and zero point", _same_parameters),
    Condition("input 0 must have one scale and zero point", _per_tensor),
)

SPECS = (
    OpSpec(
        op_type="Reshape",
        trait=Trait.MOVEMENT,
        limits=(*LIMITS, ConstInput(1)),
        reference=reshape_reference,
        check=check,
        summary="another shape on the same bytes",
    ),
    OpSpec(
        op_type="Flatten",
        trait=Trait.MOVEMENT,
        limits=LIMITS,
        reference=reshape_reference,
        check=check,
        summary="two axes on the same bytes",
    ),
    OpSpec(
        op_type="Transpose",
        trait=Trait.MOVEMENT,
        limits=(*LIMITS, RankIn(0, (1, 2, 3, 4, 5, 6))),
        reference=transpose_reference,
        check=check,
        summary="axes permuted; no cost where neighbours take the layout",
    ),
)
