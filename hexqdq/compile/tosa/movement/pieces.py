"""Slice, Split, Concat and Pad, in the layout that their inputs have."""

from __future__ import annotations

from hexqdq.compile.tosa import instructions
from hexqdq.compile.tosa.builder import Value
from hexqdq.compile.tosa.layouts import Order
from hexqdq.compile.tosa.movement.take import take, take_all
from hexqdq.compile.tosa.scope import Scope
from hexqdq.numerics import tosa_offset
from hexqdq.ops.movement import concat, pad
from hexqdq.ops.movement.concat import PiecePlan
from hexqdq.ops.movement.picks import all_of
from hexqdq.ops.movement.slices import slice_picks, split_starts
from hexqdq.ops.unit import QuantUnit


def lower_slice(unit: QuantUnit, scope: Scope) -> None:
    """The chosen elements of each axis."""
    order = scope.order(unit)
    value = take_all(scope.builder, scope.operand(unit, 0, order), slice_picks(unit), order)
    scope.store(unit.output, order, value)


def lower_split(unit: QuantUnit, scope: Scope) -> None:
    """One slice an output."""
    axis, starts = split_starts(unit)
    order = scope.order(unit)
    source = scope.operand(unit, 0, order)
    for output, start in zip(unit.outputs, starts, strict=True):
        piece = take(scope.builder, source, order.index(axis), start + all_of(output.shape[axis]))
        scope.store(output, order, piece)


def lower_concat(unit: QuantUnit, scope: Scope) -> None:
    """CONCAT of the inputs, those of another scale after a RESCALE."""
    constants = concat.plan(unit)
    order = scope.order(unit)
    pieces = [_piece(unit, scope, index, order, piece) for index, piece in enumerate(constants.pieces)]
    scope.store(unit.output, order, instructions.concat(scope.builder, pieces, order.index(constants.axis)))


def _piece(unit: QuantUnit, scope: Scope, index: int, order: Order, piece: PiecePlan | None) -> Value:
    value = scope.operand(unit, index, order)
    if piece is None:
        return value
    zero_point = piece.input_zero_point + tosa_offset(unit.input(index).dtype)
    return scope.requantized(value, piece, unit.output, zero_point)


def lower_pad(unit: QuantUnit, scope: Scope) -> None:
    """The chosen elements, then PAD with the fill."""
    constants = pad.plan(unit)
    order = scope.order(unit)
    value = take_all(scope.builder, scope.operand(unit, 0, order), constants.picks, order)
    around = [count for axis in order for count in constants.around[axis]]
    if any(around):
        fill = constants.fill + tosa_offset(unit.input(0).dtype)
        value = instructions.pad(scope.builder, value, around, fill)
    scope.store(unit.output, order, value)
