"""Softmax as integers: an exponential table, one reciprocal a row."""

from __future__ import annotations

import math

import numpy as np

from hexqdq.compile.tosa import instructions
from hexqdq.compile.tosa.builder import Shape, Value
from hexqdq.compile.tosa.scope import Scope
from hexqdq.numerics import RECIPROCAL_NUMERATOR
from hexqdq.ops.activation import SoftmaxPlan, softmax_plan
from hexqdq.ops.unit import QuantUnit


def lower_softmax(unit: QuantUnit, scope: Scope) -> None:
    """The program of ``softmax_reference``, operation by operation."""
    constants = softmax_plan(unit)
    builder = scope.builder
    order = scope.order(unit)
    source = scope.operand(unit, 0, order)
    rows, axis = _as_rows(source.shape, order.index(constants.axis))
    wide = scope.widened(builder.view(source, rows), 0, unit.input(0))
    largest = instructions.reduce(builder, "max", wide, axis)
    exponentials = _looked_up(scope, constants, instructions.binary(builder, "sub", largest, wide))
    total = instructions.reduce(builder, "sum", exponentials, axis)
    zeros = instructions.count_leading_zeros(builder, total)
    rank = len(rows)
    narrow = instructions.shift_right(builder, exponentials, scope.filled(constants.narrow_shift, rank), rounded=True)
    product = instructions.multiply(builder, narrow, _reciprocal(scope, total, zeros))
    amount = instructions.binary(builder, "sub", scope.filled(constants.probability_shift, rank), zeros)
    probability = instructions.shift_right(builder, product, amount, rounded=True)
    result = scope.requantized(probability, constants, unit.output)
    scope.store(unit.output, order, builder.view(result, source.shape))


def _as_rows(shape: Shape, axis: int) -> tuple[Shape, int]:
    """The shape as [outer, row] or [outer, row, inner] where something follows the axis, and the row's axis."""
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    return ((outer, shape[axis]) if inner == 1 else (outer, shape[axis], inner)), 1


def _looked_up(scope: Scope, constants: SoftmaxPlan, indices: Value) -> Value:
    """``table[indices]`` by a GATHER over all of them."""
    table = scope.builder.constant(constants.table.astype(np.int32).reshape(1, -1, 1))
    flat = scope.builder.view(indices, (1, math.prod(indices.shape)))
    return scope.builder.view(instructions.gather(scope.builder, table, flat), indices.shape)


def _reciprocal(scope: Scope, total: Value, zeros: Value) -> Value:
    """``(2**31 - 1) // ((total << (zeros - 1)) >> 15)``."""
    builder, rank = scope.builder, len(total.shape)
    amount = instructions.binary(builder, "sub", zeros, scope.filled(1, rank))
    normalized = instructions.binary(builder, "logical_left_shift", total, amount)
    top = instructions.shift_right(builder, normalized, scope.filled(15, rank), rounded=False)
    return instructions.binary(builder, "intdiv", scope.filled(RECIPROCAL_NUMERATOR, rank), top)
