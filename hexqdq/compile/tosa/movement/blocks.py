"""DepthToSpace and SpaceToDepth: one transpose of split dimensions, in the layout that the input has."""

from __future__ import annotations

from hexqdq.compile.tosa import instructions
from hexqdq.compile.tosa.layouts import permuted
from hexqdq.compile.tosa.scope import Scope
from hexqdq.ops.movement.blocks import plan
from hexqdq.ops.unit import QuantUnit


def lower(unit: QuantUnit, scope: Scope) -> None:
    """Dimensions split into factors, reordered and joined."""
    constants = plan(unit)
    order = scope.order(unit)
    before = [name for axis in order for name in constants.source[axis]]
    after = [name for axis in order for name in constants.result[axis]]
    source = scope.operand(unit, 0, order)
    split = scope.builder.view(source, tuple(constants.sizes[name] for name in before))
    moved = instructions.reorder(scope.builder, split, [before.index(name) for name in after])
    scope.store(unit.output, order, scope.builder.view(moved, permuted(unit.output.shape, order)))
