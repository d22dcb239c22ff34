"""Parts of a tensor: Slice and Split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq.errors import QuantizationError
from hexqdq.ops.movement.limits import LIMITS
from hexqdq.ops.movement.picks import Picks, all_of, axes_of, numbers, picked
from hexqdq.ops.spec import ConstInput, OpSpec, axis_of
from hexqdq.ops.traits import Trait
from hexqdq.ops.unit import QuantUnit

Array = NDArray[Any]


def slice_picks(unit: QuantUnit) -> Picks:
    """What a Slice takes: starts, ends, axes and steps as ONNX clamps them, which is as Python does."""
    shape = unit.input(0).shape
    starts, ends = numbers(unit, 1), numbers(unit, 2)
    assert starts is not None and ends is not None
    axes = axes_of(numbers(unit, 3), len(shape))[: len(starts)]
    steps = numbers(unit, 4) or (1,) * len(starts)
    picks = [all_of(size) for size in shape]
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        picks[axis] = np.array(range(shape[axis])[start:end:step], np.int64)
    return tuple(picks)


def slice_reference(unit: QuantUnit, inputs: Sequence[Array]) -> list[Array]:
    """The elements from start to end by steps, along each axis."""
    return [picked(inputs[0], slice_picks(unit))]


def check_slice(unit: QuantUnit) -> None:
    """Raises QuantizationError where the chosen elements do not fill the output."""
    found = tuple(len(pick) for pick in slice_picks(unit))
    if found != unit.output.shape:
        raise QuantizationError(unit.name, f"takes {found} elements for an output of shape {unit.output.shape}")


def split_starts(unit: QuantUnit) -> tuple[int, tuple[int, ...]]:
    """The axis of a Split and where each output starts on it."""
    axis = axis_of(unit, 0)
    sizes = [output.shape[axis] for output in unit.outputs]
    return axis, tuple(sum(sizes[:index]) for index in range(len(sizes)))


def split_reference(unit: QuantUnit, inputs: Sequence[Array]) -> list[Array]:
    """Consecutive pieces along one axis."""
    axis, starts = split_starts(unit)
    return list(np.split(inputs[0], starts[1:], axis))


def check_split(unit: QuantUnit) -> None:
    """Raises QuantizationError where the outputs do not make up the input."""
    axis = axis_of(unit, 0)
    total = sum(output.shape[axis] for output in unit.outputs)
    if total != unit.input(0).shape[axis]:
        raise QuantizationError(unit.name, f"{unit.input(0).shape[axis]} elements split into {total}")


SPECS = (
    OpSpec(
        op_type="Slice",
        trait=Trait.MOVEMENT,
        limits=(*LIMITS, ConstInput(1), ConstInput(2), ConstInput(3), ConstInput(4)),
        reference=slice_reference,
        check=check_slice,
        summary="elements from start to end, any steps, backwards too",
    ),
    OpSpec(
        op_type="Split",
        trait=Trait.MOVEMENT,
        limits=(*LIMITS, ConstInput(1)),
        reference=split_reference,
        check=check_split,
        many_outputs=True,
        summary="consecutive pieces along one axis",
    ),
)
