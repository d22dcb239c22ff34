"""ConvTranspose: the phases of its output as channels of one CONV2D."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hexqdq.compile.tosa import instructions
from hexqdq.compile.tosa.builder import Value
from hexqdq.compile.tosa.conv import bias_argument, image, store
from hexqdq.compile.tosa.instructions import Window
from hexqdq.compile.tosa.scope import Scope
from hexqdq.numerics import tosa_offset
from hexqdq.ops.contraction import ContractionPlan
from hexqdq.ops.conv import planar_shape, transposed_plan, window_of
from hexqdq.ops.unit import QuantUnit


@dataclass(frozen=True)
class Phases:
    """One axis of a transposed convolution as ``stride`` ordinary ones of stride 1, one per phase of the output.

    Output element ``y`` lies at ``y + pad = turn * stride + phase`` of the uncropped result and sums
    ``x[turn - tap] * w[phase + stride * tap]`` over ``taps`` taps. Turns run from ``first`` to
    ``last``; ``crop`` elements before the first output are computed too.
    """

    stride: int
    taps: int
    first: int
    last: int
    crop: int

    @classmethod
    def of(cls, size: int, pad: int, span: int, stride: int) -> Phases:
        """The phases of ``size`` outputs after ``pad`` cropped ones, by a kernel that spans ``span``."""
        first, last = pad // stride, (pad + size - 1) // stride
        return cls(stride, -(-span // stride), first, last, pad - first * stride)

    def reads(self, size: int) -> tuple[int, int, int, int]:
        """Of an input of ``size``: the pad before, the first element read, how many, the pad after."""
        first, last = self.first - self.taps + 1, self.last
        start, stop = max(first, 0), min(last + 1, size)
        return start - first, start, stop - start, last + 1 - stop


def lower(unit: QuantUnit, scope: Scope) -> None:
    """``clamp(rescale(conv2d(x, w) + bias))`` of all phases, interleaved in height and width, and cropped."""
    constants, window = transposed_plan(unit), window_of(unit)
    builder, strides = scope.builder, window.strides
    zero_point = constants.input_zero_point + tosa_offset(unit.input(0).dtype)
    batch, channels, *size = planar_shape(unit.output.shape)
    rows, columns = (Phases.of(size[i], window.pads[i], window.spans[i], strides[i]) for i in (0, 1))
    source, taps = _fitted(scope, image(unit, scope), rows, columns)
    weights = _phase_weights(constants, window.dilations, rows, columns)
    phases = _repeated(constants, strides[0] * strides[1])
    operands = (source, scope.weight(unit, f"phases{strides}", weights), bias_argument(unit, scope, phases))
    sums = instructions.conv2d(builder, operands, (zero_point, constants.weight_zero_point), taps)
    result = scope.requantized(sums, phases, unit.output)
    _, down, across, _ = result.shape
    split = builder.view(result, (batch, down, across, *strides, channels))
    woven = instructions.reorder(builder, split, (0, 1, 3, 2, 4, 5))
    full = builder.view(woven, (batch, down * strides[0], across * strides[1], channels))
    kept = (batch, size[0], size[1], channels)
    store(unit, scope, instructions.slice_(builder, full, (0, rows.crop, columns.crop, 0), kept))


def _fitted(scope: Scope, source: Value, rows: Phases, columns: Phases) -> tuple[Value, Window]:
    """The part of the NHWC source that phases read, and the window of their taps over it."""
    batch, height, width, channels = source.shape
    above, top, down, below = rows.reads(height)
    before, left, across, after = columns.reads(width)
    read = instructions.slice_(scope.builder, source, (0, top, left, 0), (batch, down, across, channels))
    return read, Window((above, below, before, after), (1, 1))


def _phase_weights(
    constants: ContractionPlan, dilations: tuple[int, int], rows: Phases, columns: Phases
) -> NDArray[np.int8]:
    """Kernels of every phase, the last tap first, as OHWI [strides * out, taps, taps, in].

    What a kernel lacks to whole turns, and dilation's holes, hold the weights' zero point.
    """
    outs, ins, *kernel = constants.weights.shape
    shape = (outs, ins, rows.taps * rows.stride, columns.taps * columns.stride)
    whole = np.full(shape, constants.weight_zero_point, np.int8)
    height, width = ((size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True))
    whole[:, :, : height : dilations[0], : width : dilations[1]] = constants.weights
    split = whole.reshape(outs, ins, rows.taps, rows.stride, columns.taps, columns.stride)
    ordered = split[:, :, ::-1, :, ::-1].transpose(3, 5, 0, 2, 4, 1)
    return ordered.reshape(-1, rows.taps, columns.taps, ins)


def _repeated(constants: ContractionPlan, count: int) -> ContractionPlan:
    """The plan with its channels repeated for every phase."""
    rescale = constants.rescale
    if len(rescale.multipliers) > 1:
        rescale = replace(rescale, multipliers=rescale.multipliers * count)
    return replace(constants, bias=np.tile(constants.bias, count), rescale=rescale)
