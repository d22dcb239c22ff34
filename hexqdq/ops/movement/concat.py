"""Concat: tensors one after the other, each brought to the output's scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq import numerics
from hexqdq.numerics import Rescale
from hexqdq.ops.contraction import output_bounds
from hexqdq.ops.elementwise import operands
from hexqdq.ops.movement.limits import DATA_LIMITS
from hexqdq.ops.spec import Condition, OpSpec, axis_of, integers
from hexqdq.ops.traits import Trait
from hexqdq.ops.unit import QuantUnit, Tensor
from hexqdq.qtypes import QuantParams

Array = NDArray[Any]


@dataclass(frozen=True)
class PiecePlan:
    """Constants of ``clamp(rescale(x - zp_in) + zp_out)`` for one input."""

    rescale: Rescale
    input_zero_point: int
    output_zero_point: int
    low: int
    high: int


@dataclass(frozen=True)
class ConcatPlan:
    """The axis, and per input what brings it to the output's integers; None where they are its own."""

    axis: int
    pieces: tuple[PiecePlan | None, ...]


def plan(unit: QuantUnit) -> ConcatPlan:
    """The integer constants; raises RescaleError where an input's scale leaves TOSA's domain."""
    return ConcatPlan(axis_of(unit, 0), tuple(_piece(unit, t) for t in unit.inputs if t is not None))


def _piece(unit: QuantUnit, source: Tensor) -> PiecePlan | None:
    x, y = source.params, unit.output.params
    if x is None or y is None:
        return None
    low, high = output_bounds(unit)
    if x == y and (low, high) == (y.dtype.low, y.dtype.high):
        return None
    ratio = np.array([x.scale[0] / y.scale[0]])
    rescale = numerics.rescaler(unit.name, ratio, np.array([255.0]), y)
    return PiecePlan(rescale, x.zero_point[0], y.zero_point[0], low, high)


def reference(unit: QuantUnit, inputs: Sequence[Array]) -> list[Array]:
    """The inputs in order along the axis; those of another scale requantized."""
    constants = plan(unit)
    pieces = zip(operands(unit, inputs), constants.pieces, strict=True)
    return [np.concatenate([_converted(v, piece, unit.output.params) for v, piece in pieces], constants.axis)]


def _converted(values: Array, piece: PiecePlan | None, params: QuantParams | None) -> Array:
    if piece is None or params is None:
        return values
    centred = integers(values) - piece.input_zero_point
    return numerics.requantize(centred, piece.rescale, params, (piece.low, piece.high))


def _one_type(unit: QuantUnit) -> str | None:
    types = {t.dtype.label for t in (*unit.inputs, *unit.outputs) if t is not None}
    return None if len(types) == 1 else " and ".join(sorted(types))


def _scales(unit: QuantUnit) -> str | None:
    quantized = {t.params is not None for t in (*unit.inputs, *unit.outputs) if t is not None}
    return None if len(quantized) == 1 else "quantized tensors beside bare integers"


SPECS = (
    OpSpec(
        op_type="Concat",
        trait=Trait.MOVEMENT,
        limits=(
            *DATA_LIMITS,
            Condition("inputs, constants too, and the output must have one type", _one_type),
            Condition("inputs and output must all be quantized, or all bare integers", _scales),
        ),
        reference=reference,
        check=plan,
        variadic=True,
        summary="tensors one after the other; those of another scale than the output's are requantized",
    ),
)
