"""Pools in NHWC: means as sums by a depthwise convolution with weights of 1, and MAX_POOL2D."""

from __future__ import annotations

import numpy as np

from hexqdq.compile.tosa import instructions, reduce
from hexqdq.compile.tosa.builder import Value
from hexqdq.compile.tosa.conv import image, store
from hexqdq.compile.tosa.instructions import Window
from hexqdq.compile.tosa.scope import Scope
from hexqdq.numerics import tosa_offset
from hexqdq.ops.pool.average import AveragePlan, average_plan
from hexqdq.ops.pool.maximum import bounds_of
from hexqdq.ops.pool.window import Span, spans_of
from hexqdq.ops.unit import QuantUnit

SMALL_KERNEL = 3
"""Larger ones take the maximum along rows first, then along columns."""


def lower_average(unit: QuantUnit, scope: Scope) -> None:
    """``clamp(rescale(sum(x - zp) * factors))``."""
    constants = average_plan(unit)
    if all(span.kernel == span.size and span.outputs == 1 and not span.before for span in constants.spans):
        reduce.write_mean(unit, scope, constants, tuple(range(2, len(unit.input(0).shape))))
        return
    sums = _sums(unit, scope, constants)
    if constants.factors is not None:
        factors = constants.factors.astype(np.int32).reshape(1, *sums.shape[1:3], 1)
        sums = instructions.multiply(scope.builder, sums, scope.builder.argument(f"{unit.name}:factors", factors))
    store(unit, scope, scope.requantized(sums, constants, unit.output))


def _sums(unit: QuantUnit, scope: Scope, constants: AveragePlan) -> Value:
    """The sum of every window, pads counting as the zero point."""
    rows, columns = _planar(constants.spans)
    zero_point = constants.input_zero_point + tosa_offset(unit.input(0).dtype)
    source = _reached(scope, image(unit, scope), rows, columns)
    kernel, channels = (rows.kernel, columns.kernel), source.shape[3]
    key = f"{rows.kernel}x{columns.kernel}x{channels}"
    ones = scope.builder.argument(f"ones:{key}", np.ones((*kernel, channels, 1), np.int8))
    bias = scope.builder.argument(f"zeros:{channels}", np.zeros(channels, np.int32))
    return instructions.depthwise_conv2d(scope.builder, (source, ones, bias), (zero_point, 0), _window(rows, columns))


def lower_maximum(unit: QuantUnit, scope: Scope) -> None:
    """The largest value of every window."""
    rows, columns = _planar(spans_of(unit))
    source = _reached(scope, image(unit, scope), rows, columns)
    if min(rows.kernel, columns.kernel) > SMALL_KERNEL:
        still = Span(rows.size, 1, 1, 0, 0, source.shape[1])
        source = _maximum(scope, source, still, columns)
        columns = Span(columns.outputs, 1, 1, 0, 0, columns.outputs)
    largest = _maximum(scope, source, rows, columns)
    bounds = bounds_of(unit)
    if bounds is not None:
        offset = tosa_offset(unit.output.dtype)
        largest = instructions.clamp(scope.builder, largest, bounds[0] + offset, bounds[1] + offset)
    store(unit, scope, largest)


def _maximum(scope: Scope, source: Value, rows: Span, columns: Span) -> Value:
    kernel = (rows.kernel, columns.kernel)
    return instructions.max_pool2d(scope.builder, source, kernel, _window(rows, columns))


def _planar(spans: tuple[Span, ...]) -> tuple[Span, Span]:
    """Windows along height and width; a single row where the input has one spatial axis."""
    rows = spans[0] if len(spans) == 2 else Span(1, 1, 1, 0, 0, 1)
    return rows, spans[-1]


def _window(rows: Span, columns: Span) -> Window:
    pads = (rows.before, max(rows.reach, 0), columns.before, max(columns.reach, 0))
    return Window(pads, (rows.stride, columns.stride))


def _reached(scope: Scope, source: Value, rows: Span, columns: Span) -> Value:
    """The part of an NHWC value that windows reach."""
    height, width = (span.size + min(span.reach, 0) for span in (rows, columns))
    return instructions.slice_(scope.builder, source, (0, 0, 0, 0), (source.shape[0], height, width, source.shape[3]))
