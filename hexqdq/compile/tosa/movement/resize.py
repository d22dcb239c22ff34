"""Resize: nearest takes elements; linear adds weighed neighbours axis by axis and rescales once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hexqdq.compile.tosa import instructions
from hexqdq.compile.tosa.builder import Value
from hexqdq.compile.tosa.movement.take import folded, take, take_all, unfolded
from hexqdq.compile.tosa.scope import Scope
from hexqdq.numerics import Lerp, tosa_offset
from hexqdq.ops.movement.resize import is_linear, linear_plan, nearest_picks
from hexqdq.ops.unit import QuantUnit

MOST_TAPS = 6
"""Neighbours of a period that are added up as shifted slices."""


def lower(unit: QuantUnit, scope: Scope) -> None:
    """Copies or weighed sums, in the layout that the input has."""
    order = scope.order(unit)
    source = scope.operand(unit, 0, order)
    if not is_linear(unit):
        scope.store(unit.output, order, take_all(scope.builder, source, nearest_picks(unit), order))
        return
    constants = linear_plan(unit)
    offset = constants.input_zero_point + tosa_offset(unit.input(0).dtype)
    wide = _Widener(scope, unit, constants.input_zero_point)
    value = source
    for position, axis in enumerate(order):
        lerp = constants.lerps[axis]
        if lerp is not None:
            value = _weighed(wide, value, position, lerp)
    zero_point = offset if value.element == "i8" else 0
    scope.store(unit.output, order, scope.requantized(value, constants, unit.output, zero_point))


@dataclass(frozen=True)
class _Widener:
    """Brings the unit's 8-bit values to i32 above their zero point when they are first weighed."""

    scope: Scope
    unit: QuantUnit
    zero_point: int

    def __call__(self, value: Value) -> Value:
        if value.element == "i32":
            return value
        return self.scope.widened(value, self.zero_point, self.unit.input(0))


@dataclass(frozen=True, eq=False)
class Period:
    """Weights that repeat: output ``i * length + p`` is the sum over t of ``x[i * step + t] * weights[t][p]``."""

    length: int
    step: int
    first: int
    weights: NDArray[np.int32]


def period_of(lerp: Lerp) -> Period | None:
    """The shortest period of few taps, None where there is none."""
    count = len(lerp.floors)
    for length in range(1, count + 1):
        step = int(lerp.floors[length] - lerp.floors[0]) if length < count else 1
        floors, weights = lerp.floors[:length], lerp.weights[:length]
        first, taps = int(floors.min()), int(floors.max() - floors.min()) + 2
        if taps > MOST_TAPS:
            return None
        whole = np.arange(count)
        if step > 0 and (
            np.array_equal(floors[whole % length] + whole // length * step, lerp.floors)
            and np.array_equal(weights[whole % length], lerp.weights)
        ):
            table = np.zeros((taps, length), np.int32)
            table[floors - first, np.arange(length)] += (lerp.denominator - weights).astype(np.int32)
            table[floors - first + 1, np.arange(length)] += weights.astype(np.int32)
            return Period(length, step, first, table)
    return None


def _weighed(wide: _Widener, value: Value, axis: int, lerp: Lerp) -> Value:
    builder = wide.scope.builder
    if lerp.denominator == 1:
        return take(builder, value, axis, lerp.low)
    period = period_of(lerp)
    if period is not None:
        return _periodic(wide, value, axis, lerp, period)
    count = len(lerp.floors)
    outer, _, inner = folded(value, axis)
    terms = []
    for indices, weights in ((lerp.low, lerp.denominator - lerp.weights), (lerp.high, lerp.weights)):
        rows = builder.view(wide(take(builder, value, axis, indices)), (outer, count, inner))
        factors = builder.constant(weights.astype(np.int32).reshape(1, count, 1))
        terms.append(instructions.multiply(builder, rows, factors))
    return unfolded(builder, instructions.binary(builder, "add", *terms), value, axis, count)


def _periodic(wide: _Widener, value: Value, axis: int, lerp: Lerp, period: Period) -> Value:
    """Shifted slices of the source, its ends repeated, each times its weights of every phase."""
    builder = wide.scope.builder
    count = len(lerp.floors)
    outer, size, inner = folded(value, axis)
    repeats = -(-count // period.length)
    total: Value | None = None
    for tap, weights in enumerate(period.weights):
        if not weights.any():
            continue
        positions = period.first + tap + np.arange(repeats) * period.step
        rows = wide(take(builder, value, axis, np.minimum(np.maximum(positions, 0), size - 1)))
        shaped = builder.view(rows, (outer, repeats, 1, inner))
        factors = builder.constant(weights.reshape(1, 1, period.length, 1))
        term = instructions.multiply(builder, shaped, factors)
        total = term if total is None else instructions.binary(builder, "add", total, term)
    assert total is not None
    rows = builder.view(total, (outer, repeats * period.length, inner))
    return unfolded(builder, take(builder, rows, 1, np.arange(count)), value, axis, count)
