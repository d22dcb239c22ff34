"""Gather and ScatterND at constant indices as slices of their data, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from hexqdq.import_.patterns.reading import array, dims, integer
from hexqdq.import_.patterns.rule import Builder, Found

MOST_SLICES = 16
"""Slices in place of one node; more would cost more than it does."""
_LAST = -(1 << 62)
"""An end before the first element."""


@dataclass(frozen=True)
class Run:
    """``count`` indices from ``start`` by ``step``."""

    start: int
    step: int
    count: int

    @property
    def end(self) -> int:
        end = self.start + self.step * self.count
        return end if end >= 0 else _LAST


def gather(node: ir.Node) -> Found | None:
    """Slices of the data for runs of evenly spaced indices; a single index drops the axis."""
    data, indices = (node.inputs[0], array(node.inputs[1])) if node.op_type == "Gather" else (None, None)
    shape, result = dims(data), dims(node.outputs[0])
    if data is None or indices is None or shape is None or result is None or data.is_initializer():
        return None
    axis = integer(node, "axis", 0) % len(shape)
    runs = _runs((indices.reshape(-1) % shape[axis]).tolist()) if indices.size else []
    if not runs or _is_dequantized(data):
        return None

    def build(builder: Builder) -> ir.Value:
        pieces = [_slice(builder, data, shape, {axis: run}) for run in runs]
        flat = _with(shape, axis, indices.size)
        joined = pieces[0] if len(pieces) == 1 else builder.op("Concat", pieces, flat, {"axis": axis}, data.dtype)
        if indices.ndim == 1:
            return joined
        if indices.ndim == 0:
            return builder.op("Squeeze", [joined, np.array([axis], np.int64)], result, dtype=data.dtype)
        return builder.op("Reshape", [joined, np.array(result, np.int64)], result, dtype=data.dtype)

    return Found((node,), build)


def _is_dequantized(value: ir.Value) -> bool:
    """Whether the model comes quantized here: movements between DQ and Q are single nodes."""
    node = value.producer()
    return node is not None and node.op_type == "DequantizeLinear"


def _runs(indices: Sequence[int]) -> list[Run]:
    """Evenly spaced runs in order, none where they are too many."""
    runs: list[Run] = []
    place = 0
    while place < len(indices):
        if len(runs) == MOST_SLICES:
            return []
        start, count = indices[place], 1
        step = indices[place + 1] - start if place + 1 < len(indices) else 1
        while step and place + count < len(indices) and indices[place + count] == start + step * count:
            count += 1
        if count == 2 and abs(step) != 1:
            count = 1
        runs.append(Run(start, step if count > 1 else 1, count))
        place += count
    return runs


def _with(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    return (*shape[:axis], size, *shape[axis + 1 :])


def _slice(builder: Builder, data: ir.Value, shape: tuple[int, ...], runs: dict[int, Run]) -> ir.Value:
    """The elements of the runs along their axes; the data itself where that is everything."""
    runs = {axis: run for axis, run in runs.items() if run != Run(0, 1, shape[axis])}
    if not runs:
        return data
    sizes = tuple(runs[axis].count if axis in runs else size for axis, size in enumerate(shape))
    columns = [(run.start, run.end, axis, run.step) for axis, run in runs.items()]
    bounds = [np.array(column, np.int64) for column in zip(*columns, strict=True)]
    return builder.op("Slice", [data, *bounds], sizes, dtype=data.dtype)


def scatter(node: ir.Node) -> Found | None:
    """``data[a:b, c:d, ...] = updates`` as what lies before and behind, along each axis in turn."""
    if node.op_type != "ScatterND" or "reduction" in node.attributes:
        return None
    data, updates = node.inputs[0], node.inputs[2]
    indices, shape = array(node.inputs[1]), dims(data)
    if data is None or updates is None or indices is None or shape is None or _is_dequantized(data):
        return None
    block = _block(indices)
    if block is None or data.is_initializer() or dims(updates) != _sizes(block, shape):
        return None
    partial = [axis for axis, run in enumerate(block) if run.count != shape[axis]]
    if len(partial) > 2:
        return None

    def build(builder: Builder) -> ir.Value:
        return _written(builder, data, shape, updates, [(axis, block[axis]) for axis in partial])

    return Found((node,), build) if partial else None


def _block(indices: NDArray[Any]) -> tuple[Run, ...] | None:
    """The ranges of a block whose every element is named once, in order; None where the indices are others."""
    count = indices.shape[-1]
    if indices.ndim != count + 1 or not indices.size or (indices < 0).any():
        return None
    starts = indices[(0,) * count]
    expected = np.moveaxis(np.indices(indices.shape[:-1]), 0, -1) + starts
    if not np.array_equal(indices, expected):
        return None
    return tuple(Run(int(start), 1, size) for start, size in zip(starts, indices.shape[:-1], strict=True))


def _sizes(block: Sequence[Run], shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*(run.count for run in block), *shape[len(block) :])


def _written(
    builder: Builder, data: ir.Value, shape: tuple[int, ...], updates: ir.Value, partial: Sequence[tuple[int, Run]]
) -> ir.Value:
    """The data with the updates in place of a block that is partial along the axes."""
    if not partial:
        return updates
    (axis, run), *others = partial
    middle_shape = _with(shape, axis, run.count)
    middle = _slice(builder, data, shape, {axis: run}) if others else data
    pieces = [
        *_beside(builder, data, shape, axis, 0, run.start),
        _written(builder, middle, middle_shape, updates, others),
        *_beside(builder, data, shape, axis, run.start + run.count, shape[axis]),
    ]
    return builder.op("Concat", pieces, shape, {"axis": axis}, data.dtype)


def _beside(
    builder: Builder, data: ir.Value, shape: tuple[int, ...], axis: int, start: int, end: int
) -> Iterator[ir.Value]:
    if end > start:
        yield _slice(builder, data, shape, {axis: Run(start, 1, end - start)})
