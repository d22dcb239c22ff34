"""Reshape and kin keep the layout where groups of axes stay together; a Transpose only renames axes."""

from __future__ import annotations

from hexqdq.compile.tosa.layouts import Order, channels_last, logical, permuted
from hexqdq.compile.tosa.scope import Scope
from hexqdq.ops.movement.shape import permutation
from hexqdq.ops.unit import QuantUnit

Shape = tuple[int, ...]
Group = tuple[list[int], list[int]]
"""Axes before and axes after that hold the same elements in the same order."""


def lower_reshape(unit: QuantUnit, scope: Scope) -> None:
    """The same bytes under another shape, in a layout that the input has if one fits."""
    before, after = unit.input(0).shape, unit.output.shape
    for order in scope.layouts.orders(unit.input(0).name):
        result = reshaped_order(before, after, order)
        if result is not None:
            break
    else:
        order, result = logical(len(before)), logical(len(after))
    source = scope.operand(unit, 0, order)
    scope.store(unit.output, result, scope.builder.view(source, permuted(after, result)))


def reshaped_order(before: Shape, after: Shape, order: Order) -> Order | None:
    """The order of the result when a value in ``order`` is reshaped as it lies; None where that mixes elements."""
    groups = axis_groups(before, after)
    home = {axis: group for group in groups for axis in group[0]}
    waiting = [axis for axis in order if before[axis] != 1]
    result: list[int] = []
    while waiting:
        group = home[waiting[0]]
        axes = [axis for axis in group[0] if before[axis] != 1]
        if waiting[: len(axes)] != axes:
            return None
        waiting = waiting[len(axes) :]
        result += group[1]
    return _named_order(after, result)


def _named_order(shape: Shape, axes: list[int]) -> Order:
    """An order whose long axes come as in ``axes``: ONNX's or channels last where one fits."""
    rank = len(shape)
    long = [axis for axis in axes if shape[axis] != 1]
    for order in (logical(rank), channels_last(rank)) if rank > 2 else (logical(rank),):
        if long == [axis for axis in order if shape[axis] != 1]:
            return order
    return (*axes, *(axis for axis in range(rank) if axis not in axes))


def axis_groups(before: Shape, after: Shape) -> list[Group]:
    """The finest groups of neighbouring axes with as many elements before as after."""
    groups: list[Group] = []
    left, right = 0, 0
    while left < len(before) or right < len(after):
        group: Group = ([], [])
        sizes = [1, 1]
        while not any(group) or sizes[0] != sizes[1]:
            if left < len(before) and (sizes[0] < sizes[1] or not group[0]):
                group[0].append(left)
                sizes[0] *= before[left]
                left += 1
            if right < len(after) and (sizes[1] < sizes[0] or not group[1]):
                group[1].append(right)
                sizes[1] *= after[right]
                right += 1
        groups.append(group)
    return groups


def lower_transpose(unit: QuantUnit, scope: Scope) -> None:
    """Nothing is written until somebody asks for an order that no form has."""
    scope.layouts.alias(unit.output.name, unit.input(0).name, permutation(unit))
