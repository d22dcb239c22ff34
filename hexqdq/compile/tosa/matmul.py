"""Gemm and MatMul: a 1x1 CONV2D over the rows with constant weights, else a MATMUL."""

from __future__ import annotations

import math

import numpy as np

from hexqdq.compile.tosa import instructions
from hexqdq.compile.tosa.builder import Shape, Value
from hexqdq.compile.tosa.instructions import Window
from hexqdq.compile.tosa.layouts import logical
from hexqdq.compile.tosa.scope import Scope
from hexqdq.numerics import tosa_offset
from hexqdq.ops.matmul import has_weights, plan, product_plan
from hexqdq.ops.unit import QuantUnit

WINDOW = Window((0, 0, 0, 0), (1, 1))


def lower(unit: QuantUnit, scope: Scope) -> None:
    """``clamp(rescale(x @ w + bias))``, rows of ``x`` along the width."""
    if not has_weights(unit):
        _lower_product(unit, scope)
        return
    constants = plan(unit)
    builder = scope.builder
    source = scope.operand(unit, 0, logical(len(unit.input(0).shape)))
    depth = source.shape[-1]
    rows = builder.view(source, (1, 1, unit.input(0).size // depth, depth))
    form = "oi" if unit.attributes.get("transB", 0) else "io"
    weight = scope.weight(unit, form, constants.weights.reshape(-1, 1, 1, depth))
    bias = builder.argument(f"{unit.name}:bias", constants.bias.astype(np.int32))
    zero_points = (constants.input_zero_point + tosa_offset(unit.input(0).dtype), constants.weight_zero_point)
    sums = instructions.conv2d(builder, (rows, weight, bias), zero_points, WINDOW)
    result = scope.requantized(sums, constants, unit.output)
    scope.store(unit.output, logical(len(unit.output.shape)), builder.view(result, unit.output.shape))


def _lower_product(unit: QuantUnit, scope: Scope) -> None:
    """``clamp(rescale(a @ b + bias))`` over the batch that both sides are repeated to."""
    constants, builder = product_plan(unit), scope.builder
    left, right = _batched(unit, scope)
    zero_points = (
        constants.left_zero_point + tosa_offset(unit.input(0).dtype),
        constants.right_zero_point + tosa_offset(unit.input(1).dtype),
    )
    sums = instructions.matmul(builder, left, right, zero_points)
    if constants.bias.any():
        bias = builder.argument(f"{unit.name}:bias", constants.bias.astype(np.int32).reshape(1, 1, -1))
        sums = instructions.binary(builder, "add", sums, bias)
    result = scope.requantized(sums, constants, unit.output)
    scope.store(unit.output, logical(len(unit.output.shape)), builder.view(result, unit.output.shape))


def _batched(unit: QuantUnit, scope: Scope) -> tuple[Value, Value]:
    """Both sides as [batch, rows, columns]; a right-hand side without a batch meets all rows at once."""
    builder = scope.builder
    left, right = (scope.operand(unit, index, logical(len(unit.input(index).shape))) for index in (0, 1))
    rows, depth, columns = left.shape[-2], left.shape[-1], right.shape[-1]
    if math.prod(right.shape[:-2]) == 1:
        return (
            builder.view(left, (1, math.prod(left.shape[:-1]), depth)),
            builder.view(right, (1, depth, columns)),
        )
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    return (_repeated(scope, left, batch, (rows, depth)), _repeated(scope, right, batch, (depth, columns)))


def _repeated(scope: Scope, value: Value, batch: Shape, matrix: Shape) -> Value:
    """The matrices of ``value`` under a batch shape, as [batch, rows, columns]."""
    leading = (1,) * (len(batch) - len(value.shape) + 2) + value.shape[:-2]
    wide = instructions.tile(scope.builder, scope.builder.view(value, (*leading, *matrix)), (*batch, *matrix))
    return scope.builder.view(wide, (math.prod(batch), *matrix))
