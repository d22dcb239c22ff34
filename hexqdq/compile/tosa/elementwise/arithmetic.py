"""Sums, products, slopes and bounds, in the layout that the operands have."""

from __future__ import annotations

from hexqdq.compile.tosa import instructions
from hexqdq.compile.tosa.builder import Value
from hexqdq.compile.tosa.layouts import Order
from hexqdq.compile.tosa.scope import Scope
from hexqdq.numerics import tosa_offset
from hexqdq.ops.elementwise.clip import clip_plan
from hexqdq.ops.elementwise.product import product_plan, slope_plan
from hexqdq.ops.elementwise.sums import sum_plan
from hexqdq.ops.unit import QuantUnit


def lower_sum(unit: QuantUnit, scope: Scope) -> None:
    """``clamp(rescale((a - za) * left + (b - zb) * right))``."""
    constants = sum_plan(unit)
    order = scope.order(unit)
    left = _scaled(unit, scope, 0, order, (constants.left_zero_point, constants.scale.left))
    right = _scaled(unit, scope, 1, order, (constants.right_zero_point, constants.scale.right))
    total = instructions.binary(scope.builder, "add", left, right)
    scope.store(unit.output, order, scope.requantized(total, constants, unit.output))


def _centred(unit: QuantUnit, scope: Scope, index: int, order: Order, zero_point: int) -> Value:
    return scope.widened(scope.operand(unit, index, order), zero_point, unit.input(index))


def _scaled(unit: QuantUnit, scope: Scope, index: int, order: Order, constants: tuple[int, int]) -> Value:
    zero_point, multiplier = constants
    wide = _centred(unit, scope, index, order, zero_point)
    return instructions.multiply(scope.builder, wide, scope.filled(multiplier, len(order)))


def lower_product(unit: QuantUnit, scope: Scope) -> None:
    """``clamp(rescale((a - za) * (b - zb)))``."""
    constants = product_plan(unit)
    order = scope.order(unit)
    left = _centred(unit, scope, 0, order, constants.left_zero_point)
    right = _centred(unit, scope, 1, order, constants.right_zero_point)
    product = instructions.multiply(scope.builder, left, right)
    scope.store(unit.output, order, scope.requantized(product, constants, unit.output))


def lower_slopes(unit: QuantUnit, scope: Scope) -> None:
    """``clamp(positive(max(x - zx, 0)) + negative(min(x - zx, 0) * (slope - zs)))``."""
    constants = slope_plan(unit)
    builder, order = scope.builder, scope.order(unit)
    zero = scope.filled(0, len(order))
    centred = _centred(unit, scope, 0, order, constants.input_zero_point)
    slope = _centred(unit, scope, 1, order, constants.slope_zero_point)
    above = instructions.binary(builder, "maximum", centred, zero)
    below = instructions.multiply(builder, instructions.binary(builder, "minimum", centred, zero), slope)
    total = instructions.binary(
        builder,
        "add",
        instructions.rescale(builder, above, constants.positive, (0, 0), "i32"),
        instructions.rescale(builder, below, constants.negative, (0, 0), "i32"),
    )
    scope.store(unit.output, order, scope.requantized(total, constants, unit.output))


def lower_clip(unit: QuantUnit, scope: Scope) -> None:
    """``clamp(rescale(x - zp))``."""
    constants = clip_plan(unit)
    order = scope.order(unit)
    source = scope.operand(unit, 0, order)
    zero_point = constants.input_zero_point + tosa_offset(unit.input(0).dtype)
    scope.store(unit.output, order, scope.requantized(source, constants, unit.output, zero_point))
