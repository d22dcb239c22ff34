"""Conv: CONV2D or DEPTHWISE_CONV2D in NHWC with one RESCALE."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hexqdq.compile.tosa import instructions
from hexqdq.compile.tosa.builder import Value
from hexqdq.compile.tosa.instructions import Window
from hexqdq.compile.tosa.layouts import channels_last, permuted
from hexqdq.compile.tosa.scope import Scope
from hexqdq.numerics import tosa_offset
from hexqdq.ops.contraction import ContractionPlan, params_of
from hexqdq.ops.conv import group_of, is_depthwise, plan, planar_shape, window_of
from hexqdq.ops.unit import QuantUnit

FULL_CHANNELS = 32
"""Output channels that a kernel computes at once; groups with fewer are joined, zeros off the diagonal."""


@dataclass(frozen=True)
class Span:
    """What a kernel reads along one axis: pads and how many elements of the input from its start.

    ONNX drops the end that a stride does not reach; TOSA wants it gone. ``used`` is below 1 where
    every window lies in the padding before the input.
    """

    before: int
    after: int
    used: int

    @classmethod
    def of(cls, size: int, pads: tuple[int, int], kernel: int, stride: int) -> Span:
        """The span of windows over ``size`` elements with ``pads`` before and after."""
        unreached = (size + sum(pads) - kernel) % stride
        dropped = min(unreached, pads[1])
        return cls(pads[0], pads[1] - dropped, size - (unreached - dropped))


def lower(unit: QuantUnit, scope: Scope) -> None:
    """``clamp(rescale(conv2d(x, w) + bias))``."""
    constants, groups = plan(unit), 1
    if not is_depthwise(unit):
        constants, groups = _joined(constants, group_of(unit))
    zero_points = (constants.input_zero_point + tosa_offset(unit.input(0).dtype), constants.weight_zero_point)
    source = image(unit, scope)
    spans = _spans(unit)
    if min(span.used for span in spans) < 1:
        result = _bias_only(unit, scope, constants, source)
    elif groups == 1:
        source, window = _fitted(unit, scope, source, spans)
        operands = (source, _weight(unit, scope, constants), bias_argument(unit, scope, constants))
        convolution = instructions.depthwise_conv2d if is_depthwise(unit) else instructions.conv2d
        result = scope.requantized(convolution(scope.builder, operands, zero_points, window), constants, unit.output)
    else:
        source, window = _fitted(unit, scope, source, spans)
        result = _grouped(unit, scope, list(_parts(constants, groups)), (source, zero_points[0]), window)
    store(unit, scope, result)


def image(unit: QuantUnit, scope: Scope) -> Value:
    """The input as NHWC; height 1 where it has one dimension only."""
    shape = unit.input(0).shape
    value = scope.operand(unit, 0, channels_last(len(shape)))
    return scope.builder.view(value, permuted(planar_shape(shape), channels_last(4)))


def store(unit: QuantUnit, scope: Scope, result: Value) -> None:
    """An NHWC result as the unit's output."""
    order = channels_last(len(unit.output.shape))
    scope.store(unit.output, order, scope.builder.view(result, permuted(unit.output.shape, order)))


def bias_argument(unit: QuantUnit, scope: Scope, constants: ContractionPlan, form: str = "bias") -> Value:
    """The bias of the plan or of a part of it."""
    return scope.builder.argument(f"{unit.name}:{form}", constants.bias.astype(np.int32))


def _weight(unit: QuantUnit, scope: Scope, constants: ContractionPlan) -> Value:
    """Weights as OHWI, depthwise ones as HWCM."""
    weights = constants.weights
    if not is_depthwise(unit):
        return scope.weight(unit, "ohwi", weights.transpose(0, 2, 3, 1))
    split = weights.reshape(unit.input(0).shape[1], -1, *weights.shape[2:])
    return scope.weight(unit, "hwcm", split.transpose(2, 3, 0, 1))


def _spans(unit: QuantUnit) -> tuple[Span, Span]:
    """What windows read along height and width."""
    window = window_of(unit)
    top, left, bottom, right = window.pads
    height, width = planar_shape(unit.input(0).shape)[2:]
    return (
        Span.of(height, (top, bottom), window.spans[0], window.strides[0]),
        Span.of(width, (left, right), window.spans[1], window.strides[1]),
    )


def _fitted(unit: QuantUnit, scope: Scope, source: Value, spans: tuple[Span, Span]) -> tuple[Value, Window]:
    """The part of the NHWC source that windows reach, and the window over it."""
    window = window_of(unit)
    rows, columns = spans
    kept = (source.shape[0], rows.used, columns.used, source.shape[3])
    pads = (rows.before, rows.after, columns.before, columns.after)
    source = instructions.slice_(scope.builder, source, (0, 0, 0, 0), kept)
    if is_depthwise(unit) and window.kernel == (1, 1) and any(pads):
        source, pads = _padded(unit, scope, source, pads), (0, 0, 0, 0)
    return source, Window(pads, window.strides, window.dilations)


def _padded(unit: QuantUnit, scope: Scope, source: Value, pads: tuple[int, int, int, int]) -> Value:
    """The source with its padding written out.

    Upstream turns a depthwise 1x1 convolution into a product, and pads there i32 values by an i8 zero point.
    """
    zero_point = params_of(unit, 0).zero_point[0] + tosa_offset(unit.input(0).dtype)
    return instructions.pad(scope.builder, source, (0, 0, *pads, 0, 0), zero_point)


def _bias_only(unit: QuantUnit, scope: Scope, constants: ContractionPlan, source: Value) -> Value:
    """A Conv whose windows all lie in the padding: 1x1 weights of 0 over an image of the output's size."""
    batch, height, width, channels = source.shape
    _, outs, *sizes = planar_shape(unit.output.shape)
    rows, columns = (Span(0, max(w - size, 0), min(w, size)) for size, w in zip((height, width), sizes, strict=True))
    weight = scope.builder.argument(f"{unit.name}:zeros", np.zeros((outs, 1, 1, channels), np.int8))
    kept = instructions.slice_(scope.builder, source, (0, 0, 0, 0), (batch, rows.used, columns.used, channels))
    operands = (kept, weight, bias_argument(unit, scope, constants))
    window = Window((0, rows.after, 0, columns.after), (1, 1))
    zero_point = constants.input_zero_point + tosa_offset(unit.input(0).dtype)
    sums = instructions.conv2d(scope.builder, operands, (zero_point, 0), window)
    return scope.requantized(sums, constants, unit.output)


def _joined(constants: ContractionPlan, groups: int) -> tuple[ContractionPlan, int]:
    """The plan of fewer, wider groups and their number; other groups' weights are the zero point."""
    outs, ins, *kernel = constants.weights.shape
    outs //= groups
    join = max(
        count for count in range(1, groups + 1) if groups % count == 0 and count * outs <= max(FULL_CHANNELS, outs)
    )
    split = constants.weights.reshape(groups // join, join, outs, ins, *kernel)
    wide = np.full((groups // join, join, outs, join, ins, *kernel), constants.weight_zero_point, np.int8)
    for index in range(join):
        wide[:, index, :, index] = split[:, index]
    return replace(constants, weights=wide.reshape(groups * outs, join * ins, *kernel)), groups // join


def _grouped(
    unit: QuantUnit, scope: Scope, parts: list[ContractionPlan], source: tuple[Value, int], window: Window
) -> Value:
    """A convolution per group of channels of the source (with its zero point), their results side by side."""
    value, zero_point = source
    *image_shape, channels = value.shape
    count = channels // len(parts)
    results = []
    for group, part in enumerate(parts):
        start, size = (0, 0, 0, group * count), (*image_shape, count)
        inputs = instructions.slice_(scope.builder, value, start, size)
        weight = scope.weight(unit, f"ohwi{group}", part.weights.transpose(0, 2, 3, 1))
        operands = (inputs, weight, bias_argument(unit, scope, part, f"bias{group}"))
        sums = instructions.conv2d(scope.builder, operands, (zero_point, part.weight_zero_point), window)
        results.append(scope.requantized(sums, part, unit.output))
    return instructions.concat(scope.builder, results, 3)


def _parts(constants: ContractionPlan, groups: int) -> Iterator[ContractionPlan]:
    """The plan of every group's output channels."""
    count = len(constants.weights) // groups
    for group in range(groups):
        own = slice(group * count, (group + 1) * count)
        rescale = constants.rescale
        if len(rescale.multipliers) > 1:
            rescale = replace(rescale, multipliers=rescale.multipliers[own])
        yield replace(constants, weights=constants.weights[own], bias=constants.bias[own], rescale=rescale)
