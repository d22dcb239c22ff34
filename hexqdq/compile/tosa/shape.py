"""Data movements: a Transpose only renames dimensions, a Reshape wants them in ONNX's order."""

from __future__ import annotations

from hexqdq.compile.tosa.layouts import logical
from hexqdq.compile.tosa.scope import Scope
from hexqdq.ops.shape import permutation
from hexqdq.ops.unit import QuantUnit


def lower_reshape(unit: QuantUnit, scope: Scope) -> None:
    """Reshape and Flatten: the same elements in row-major order."""
    source = scope.operand(unit, 0, logical(len(unit.input(0).shape)))
    value = scope.builder.view(source, unit.output.shape)
    scope.store(unit.output, logical(len(unit.output.shape)), value)


def lower_transpose(unit: QuantUnit, scope: Scope) -> None:
    """Nothing is written until somebody asks for an order that no form has."""
    scope.layouts.alias(unit.output.name, unit.input(0).name, permutation(unit))
