"""Reductions over whole axes, in the layout that the input has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Protocol

from hexqdq.compile.tosa import instructions
from hexqdq.compile.tosa.builder import Shape
from hexqdq.compile.tosa.layouts import Order, permuted
from hexqdq.compile.tosa.scope import Requantization, Scope
from hexqdq.ops.reduce.argmax import takes_last
from hexqdq.ops.reduce.mean import axes_of, mean_plan
from hexqdq.ops.spec import axis_of
from hexqdq.ops.unit import QuantUnit, Tensor


class MeanConstants(Requantization, Protocol):
    """The part of a plan that makes a mean of sums."""

    @property
    def input_zero_point(self) -> int: ...


def lower_mean(unit: QuantUnit, scope: Scope) -> None:
    """``clamp(rescale(sum(x - zp)))`` over the unit's axes."""
    write_mean(unit, scope, mean_plan(unit), axes_of(unit))


def write_mean(unit: QuantUnit, scope: Scope, constants: MeanConstants, axes: Sequence[int]) -> None:
    """Sums over neighbouring axes as one reduction each."""
    source = unit.input(0)
    order = scope.layouts.orders(source.name)[0]
    shape, summed = _runs(permuted(source.shape, order), [axis in axes for axis in order])
    flat = scope.builder.view(scope.operand(unit, 0, order), shape)
    total = scope.widened(flat, constants.input_zero_point, source)
    for position in summed:
        total = instructions.reduce(scope.builder, "sum", total, position)
    left = remaining(order, axes, unit.output)
    result = scope.requantized(total, constants, unit.output)
    scope.store(unit.output, left, scope.builder.view(result, permuted(unit.output.shape, left) or (1,)))


def _runs(shape: Shape, reduced: Sequence[bool]) -> tuple[Shape, tuple[int, ...]]:
    """The shape with neighbours of one kind joined, and which of its axes are reduced; at least one axis."""
    axes = [(flag, size) for flag, size in zip(reduced, shape, strict=True) if size != 1]
    runs = [(flag, math.prod(size for _, size in run)) for flag, run in groupby(axes, key=lambda item: item[0])]
    runs = runs or [(False, 1)]
    return tuple(size for _, size in runs), tuple(index for index, (flag, _) in enumerate(runs) if flag)


def remaining(order: Order, axes: Sequence[int], output: Tensor) -> Order:
    """The order of a result whose reduced axes are kept as 1, or gone where its rank says so."""
    if len(output.shape) == len(order):
        return order
    kept = [axis for axis in range(len(order)) if axis not in axes]
    return tuple(kept.index(axis) for axis in order if axis in kept)


def lower_argmax(unit: QuantUnit, scope: Scope) -> None:
    """ARGMAX takes the first of equal values; on the reversed axis that is the last."""
    source, axis = unit.input(0), axis_of(unit, 0)
    order = scope.layouts.orders(source.name)[0]
    value, position = scope.operand(unit, 0, order), order.index(axis)
    if len(order) == 1:
        value, position = scope.builder.view(value, (1, *value.shape)), 1
    if takes_last(unit):
        value = instructions.reverse(scope.builder, value, position)
    index = instructions.argmax(scope.builder, value, position)
    if takes_last(unit):
        last = scope.filled(source.shape[axis] - 1, len(index.shape))
        index = instructions.binary(scope.builder, "sub", last, index)
    left = remaining(order, (axis,), unit.output)
    scope.store(unit.output, left, scope.builder.view(index, permuted(unit.output.shape, left) or (1,)))
