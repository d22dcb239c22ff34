"""Chosen elements of one axis, by the cheapest TOSA operations that give them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hexqdq.compile.tosa import instructions
from hexqdq.compile.tosa.builder import Builder, Value
from hexqdq.ops.movement.picks import Indices, Picks

MOST_RUNS = 16
"""More runs of neighbours than these are gathered one element at a time."""


def take_all(builder: Builder, value: Value, picks: Picks, order: Sequence[int]) -> Value:
    """The value in ``order`` with the elements that ``picks`` chooses along each ONNX axis."""
    for position, axis in enumerate(order):
        value = take(builder, value, position, picks[axis])
    return value


def take(builder: Builder, value: Value, axis: int, indices: Indices) -> Value:
    """The elements ``indices`` of ``axis``, in that order."""
    if np.array_equal(indices, np.arange(value.shape[axis])):
        return value
    step = _step(indices)
    if step is not None and step > 0:
        return _forward(builder, value, axis, int(indices[0]), len(indices), step)
    if step is not None and step < 0:
        low = _forward(builder, value, axis, int(indices[-1]), int(indices[0] - indices[-1]) + 1, 1)
        return take(builder, _reversed(builder, low, axis), axis, np.arange(0, low.shape[axis], -step))
    times = _times(indices)
    if times is not None:
        return _repeated(builder, take(builder, value, axis, indices[::times]), axis, times)
    runs = _runs(indices)
    if len(runs) <= MOST_RUNS:
        return instructions.concat(builder, [take(builder, value, axis, run) for run in runs], axis)
    return _gathered(builder, value, axis, indices)


def _step(indices: Indices) -> int | None:
    """The constant difference of neighbours, 1 where there is one element, None where it varies or is 0."""
    if len(indices) == 1:
        return 1
    steps = set(np.diff(indices).tolist())
    return steps.pop() if len(steps) == 1 and 0 not in steps else None


def _times(indices: Indices) -> int | None:
    """How often each of neighbouring elements appears, None where that varies."""
    times = int(np.count_nonzero(indices == indices[0]))
    once = indices[::times]
    if times == 1 or len(indices) % times or not np.array_equal(np.repeat(once, times), indices):
        return None
    return times if _step(once) is not None else None


def _runs(indices: Indices) -> list[Indices]:
    """Pieces in which neighbours differ by one constant of -1, 0 or 1."""
    runs: list[list[int]] = []
    for index in indices.tolist():
        last = runs[-1] if runs else []
        step = index - last[-1] if last else None
        fits = step in (-1, 0, 1) and (len(last) == 1 or last[1] - last[0] == step)
        if fits:
            last.append(index)
        else:
            runs.append([index])
    return [np.array(run, np.int64) for run in runs]


def folded(value: Value, axis: int) -> tuple[int, int, int]:
    """The value's shape as [outer, axis, inner]."""
    return math.prod(value.shape[:axis]), value.shape[axis], math.prod(value.shape[axis + 1 :])


def unfolded(builder: Builder, value: Value, like: Value, axis: int, count: int) -> Value:
    """A value of ``count`` elements on ``axis`` under the shape of ``like`` elsewhere."""
    return builder.view(value, (*like.shape[:axis], count, *like.shape[axis + 1 :]))


def _forward(builder: Builder, value: Value, axis: int, start: int, count: int, step: int) -> Value:
    """``count`` elements from ``start``: a slice, or one of ``step`` columns."""
    if step == 1:
        begin = [0] * len(value.shape)
        begin[axis] = start
        size = tuple(count if i == axis else extent for i, extent in enumerate(value.shape))
        return instructions.slice_(builder, value, begin, size)
    outer, extent, inner = folded(value, axis)
    source = builder.view(value, (outer, extent, inner))
    phase = min(start, max(step - 1 - (extent - start - (count - 1) * step - 1), 0))
    first = start - phase
    missing = first + count * step - extent
    if missing > 0:
        source = instructions.pad(builder, source, (0, 0, 0, missing, 0, 0), 0)
    rows = instructions.slice_(builder, source, (0, first, 0), (outer, count * step, inner))
    columns = builder.view(rows, (outer, count, step, inner))
    column = instructions.slice_(builder, columns, (0, 0, phase, 0), (outer, count, 1, inner))
    return unfolded(builder, column, value, axis, count)


def _reversed(builder: Builder, value: Value, axis: int) -> Value:
    shape = folded(value, axis)
    backwards = instructions.reverse(builder, builder.view(value, shape), 1)
    return builder.view(backwards, value.shape)


def _repeated(builder: Builder, value: Value, axis: int, times: int) -> Value:
    outer, extent, inner = folded(value, axis)
    tiled = instructions.tile(builder, builder.view(value, (outer, extent, 1, inner)), (outer, extent, times, inner))
    return unfolded(builder, tiled, value, axis, extent * times)


def _gathered(builder: Builder, value: Value, axis: int, indices: Indices) -> Value:
    outer, extent, inner = folded(value, axis)
    source = instructions.reorder(builder, builder.view(value, (outer, extent, inner)), (1, 0, 2))
    table = builder.view(source, (1, extent, outer * inner))
    count = len(indices)
    rows = instructions.gather(builder, table, builder.constant(indices.astype(np.int32).reshape(1, count)))
    back = instructions.reorder(builder, builder.view(rows, (count, outer, inner)), (1, 0, 2))
    return unfolded(builder, back, value, axis, count)
