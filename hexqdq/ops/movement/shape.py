"""The same elements under another shape or order of axes: Reshape, Flatten, Squeeze, Unsqueeze, Transpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq.errors import QuantizationError
from hexqdq.ops.conv import ints
from hexqdq.ops.movement.limits import LIMITS
from hexqdq.ops.spec import ConstInput, OpSpec, RankIn
from hexqdq.ops.traits import Trait
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


def _view(op_type: str, summary: str, *limits: ConstInput) -> OpSpec:
    return OpSpec(
        op_type=op_type,
        trait=Trait.MOVEMENT,
        limits=(*LIMITS, *limits),
        reference=reshape_reference,
        check=check,
        summary=summary,
    )


SPECS = (
    _view("Reshape", "another shape on the same bytes", ConstInput(1)),
    _view("Flatten", "two axes on the same bytes"),
    _view("Squeeze", "axes of size 1 left out, on the same bytes", ConstInput(1)),
    _view("Unsqueeze", "axes of size 1 put in, on the same bytes", ConstInput(1)),
    OpSpec(
        op_type="Transpose",
        trait=Trait.MOVEMENT,
        limits=(*LIMITS, RankIn(0, (1, 2, 3, 4, 5, 6))),
        reference=transpose_reference,
        check=check,
        summary="axes permuted; no cost where neighbours take the layout",
    ),
)
