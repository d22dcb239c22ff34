"""Pad: elements around a tensor, or fewer of it where pads are negative."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq import numerics
from hexqdq.errors import QuantizationError
from hexqdq.ops.movement.limits import LIMITS
from hexqdq.ops.movement.picks import Indices, Picks, axes_of, numbers, picked
from hexqdq.ops.spec import AttributeIn, Condition, ConstInput, OpSpec
from hexqdq.ops.traits import Trait
from hexqdq.ops.unit import QuantUnit

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class PadPlan:
    """The elements of the input to take along each axis, then (before, after) elements of ``fill`` around them."""

    picks: Picks
    around: tuple[tuple[int, int], ...]
    fill: int


def plan(unit: QuantUnit) -> PadPlan:
    """The integer constants; the fill is quantized with the data's parameters and saturates."""
    shape = unit.input(0).shape
    given = numbers(unit, 1)
    assert given is not None
    axes = axes_of(numbers(unit, 3), len(shape))
    pads = dict.fromkeys(range(len(shape)), (0, 0))
    pads |= {axis: (given[index], given[index + len(axes)]) for index, axis in enumerate(axes)}
    mode = str(unit.attributes.get("mode", "constant"))
    if mode == "constant":
        kept = [np.arange(max(-low, 0), shape[axis] - max(-high, 0)) for axis, (low, high) in pads.items()]
        return PadPlan(tuple(kept), tuple((max(low, 0), max(high, 0)) for low, high in pads.values()), fill(unit))
    place = {"edge": _edge, "reflect": _reflected, "wrap": _wrapped}[mode]
    picks = [place(np.arange(-low, shape[axis] + high), shape[axis]) for axis, (low, high) in pads.items()]
    return PadPlan(tuple(picks), ((0, 0),) * len(shape), 0)


def fill(unit: QuantUnit) -> int:
    """What a constant Pad fills with: real 0 where nothing is given, integer 0 on bare integers."""
    params = unit.input(0).params
    if not unit.has_input(2):
        return 0 if params is None else params.zero_point[0]
    values, own = unit.constant(2), unit.input(2).params
    if params is None or own == params:
        return int(values.reshape(()))
    real = values if own is None else numerics.dequantize(values, own)
    return int(numerics.quantize(np.asarray(real, np.float32), params).reshape(()))


def _edge(positions: Indices, size: int) -> Indices:
    return np.minimum(np.maximum(positions, 0), size - 1)


def _reflected(positions: Indices, size: int) -> Indices:
    period = max(2 * (size - 1), 1)
    folded = np.abs(positions) % period
    return np.minimum(folded, period - folded) if size > 1 else np.zeros_like(positions)


def _wrapped(positions: Indices, size: int) -> Indices:
    return positions % size


def reference(unit: QuantUnit, inputs: Sequence[Array]) -> list[Array]:
    """The chosen elements with the fill around them."""
    constants = plan(unit)
    inner = picked(inputs[0], constants.picks)
    return [np.pad(inner, constants.around, constant_values=constants.fill) if constants.around else inner]


def check(unit: QuantUnit) -> None:
    """Raises QuantizationError where the padded data do not fill the output."""
    constants = plan(unit)
    sizes = tuple(len(pick) + sum(pads) for pick, pads in zip(constants.picks, constants.around, strict=True))
    if sizes != unit.output.shape:
        raise QuantizationError(unit.name, f"pads to {sizes}; the output has shape {unit.output.shape}")


def _nothing_left(unit: QuantUnit) -> str | None:
    given = numbers(unit, 1) if unit.is_constant(1) else None
    if given is None or min(given, default=0) >= 0:
        return None
    return None if all(len(pick) for pick in plan(unit).picks) else f"pads {given}"


SPECS = (
    OpSpec(
        op_type="Pad",
        trait=Trait.MOVEMENT,
        limits=(
            *LIMITS,
            ConstInput(1),
            ConstInput(2),
            ConstInput(3),
            AttributeIn("mode", ("constant", "edge", "reflect", "wrap")),
            Condition("negative pads must leave elements on every axis", _nothing_left),
        ),
        reference=reference,
        check=check,
        value_inputs=(2,),
        summary="a constant, the edge, a reflection or the other end around a tensor; negative pads crop",
    ),
)
