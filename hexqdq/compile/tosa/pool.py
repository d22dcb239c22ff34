"""Average pools that cover their input: one i32 sum and one RESCALE."""

from __future__ import annotations

from hexqdq.compile.tosa import instructions
from hexqdq.compile.tosa.layouts import channels_last, logical, permuted
from hexqdq.compile.tosa.scope import Scope
from hexqdq.ops.pool import plan, positions
from hexqdq.ops.unit import QuantUnit


def lower_mean(unit: QuantUnit, scope: Scope) -> None:
    """``clamp(rescale(sum(x - zp)))`` over the positions, in the layout that the input has."""
    constants = plan(unit)
    source = unit.input(0)
    rank = len(source.shape)
    planes = logical(rank) in scope.layouts.orders(source.name)
    order = logical(rank) if planes else channels_last(rank)
    batch, channels, count = source.shape[0], source.shape[1], positions(unit)
    flat_shape, axis = ((batch, channels, count), 2) if planes else ((batch, count, channels), 1)
    flat = scope.builder.view(scope.operand(unit, 0, order), flat_shape)
    wide = scope.widened(flat, constants.input_zero_point, source)
    total = instructions.reduce(scope.builder, "sum", wide, axis)
    shaped = scope.builder.view(total, permuted(unit.output.shape, order))
    scope.store(unit.output, order, scope.requantized(shaped, constants, unit.output))
