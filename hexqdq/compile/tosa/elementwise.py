"""Add, and Relu and Clip that stand alone: in the layout that the operands have."""

from __future__ import annotations

from hexqdq.compile.tosa import instructions
from hexqdq.compile.tosa.builder import Value
from hexqdq.compile.tosa.layouts import Order
from hexqdq.compile.tosa.scope import Scope
from hexqdq.numerics import tosa_offset
from hexqdq.ops.elementwise import clip_plan, sum_plan
from hexqdq.ops.unit import QuantUnit


def lower_add(unit: QuantUnit, scope: Scope) -> None:
    """``clamp(rescale((a - za) * left + (b - zb) * right))``."""
    constants = sum_plan(unit)
    order = scope.order(unit)
    left = _scaled(unit, scope, 0, order, (constants.left_zero_point, constants.scale.left))
    right = _scaled(unit, scope, 1, order, (constants.right_zero_point, constants.scale.right))
    total = instructions.binary(scope.builder, "add", left, right)
    scope.store(unit.output, order, scope.requantized(total, constants, unit.output))


def _scaled(unit: QuantUnit, scope: Scope, index: int, order: Order, constants: tuple[int, int]) -> Value:
    zero_point, multiplier = constants
    wide = scope.widened(scope.operand(unit, index, order), zero_point, unit.input(index))
    return instructions.multiply(scope.builder, wide, scope.filled(multiplier, len(order)))


def lower_clip(unit: QuantUnit, scope: Scope) -> None:
    """``clamp(rescale(x - zp))``."""
    constants = clip_plan(unit)
    order = scope.order(unit)
    source = scope.operand(unit, 0, order)
    zero_point = constants.input_zero_point + tosa_offset(unit.input(0).dtype)
    scope.store(unit.output, order, scope.requantized(source, constants, unit.output, zero_point))
