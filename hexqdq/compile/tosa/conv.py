"""Conv: CONV2D or DEPTHWISE_CONV2D in NHWC with one RESCALE."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hexqdq.compile.tosa import instructions
from hexqdq.compile.tosa.builder import Value
from hexqdq.compile.tosa.instructions import Window
from hexqdq.compile.tosa.layouts import channels_last
from hexqdq.compile.tosa.scope import Scope
from hexqdq.numerics import tosa_offset
from hexqdq.ops.conv import ints, is_depthwise, plan
from hexqdq.ops.unit import QuantUnit


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
    constants = plan(unit)
    order = channels_last(4)
    source = scope.operand(unit, 0, order)
    zero_point = constants.input_zero_point + tosa_offset(unit.input(0).dtype)
    source, window = _fitted(unit, scope, source, zero_point)
    weight = _weight(unit, scope, constants.weights)
    bias = scope.builder.argument(f"{unit.name}:bias", constants.bias.astype(np.int32))
    convolution = instructions.depthwise_conv2d if is_depthwise(unit) else instructions.conv2d
    sums = convolution(scope.builder, (source, weight, bias), (zero_point, 0), window)
    scope.store(unit.output, order, scope.requantized(sums, constants, unit.output))


def _weight(unit: QuantUnit, scope: Scope, weights: np.typing.NDArray[np.int8]) -> Value:
    """Weights as OHWI, depthwise ones as HWCM."""
    name = unit.input(1).name
    if not is_depthwise(unit):
        return scope.builder.argument(f"{name}:ohwi", weights.transpose(0, 2, 3, 1))
    channels = unit.input(0).shape[1]
    split = weights.reshape(channels, -1, *weights.shape[2:])
    return scope.builder.argument(f"{name}:hwcm", split.transpose(2, 3, 0, 1))


def _fitted(unit: QuantUnit, scope: Scope, source: Value, zero_point: int) -> tuple[Value, Window]:
    """The part of the NHWC source that windows reach, and the window over it."""
    top, left, bottom, right = ints(unit, "pads", (0, 0, 0, 0))
    strides = ints(unit, "strides", (1, 1))
    dilations = ints(unit, "dilations", (1, 1))
    extents = [(size - 1) * step + 1 for size, step in zip(unit.input(1).shape[2:], dilations, strict=True)]
    batch, height, width, channels = source.shape
    rows = Span.of(height, (top, bottom), extents[0], strides[0])
    columns = Span.of(width, (left, right), extents[1], strides[1])
    if rows.used < 1 or columns.used < 1:
        pads = (0, 0, rows.before, rows.after, columns.before, columns.after, 0, 0)
        source = instructions.pad(scope.builder, source, pads, zero_point)
        rows = Span(0, 0, rows.used + rows.before + rows.after)
        columns = Span(0, 0, columns.used + columns.before + columns.after)
    source = instructions.slice_(scope.builder, source, (0, 0, 0, 0), (batch, rows.used, columns.used, channels))
    pad = (rows.before, rows.after, columns.before, columns.after)
    return source, Window(pad, (strides[0], strides[1]), (dilations[0], dilations[1]))
