"""The TOSA 1.0 operations that lowerings use, each with its operands' and result's types worked out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hexqdq.compile.tosa.builder import Builder, Shape, Value
from hexqdq.numerics import Rescale


@dataclass(frozen=True)
class Window:
    """How a kernel moves over height and width: TOSA's pad (top, bottom, left, right), stride and dilation."""

    pad: tuple[int, int, int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int] = (1, 1)

    @property
    def attributes(self) -> str:
        return ", ".join(
            f"{name} = {_array(values)}"
            for name, values in (("dilation", self.dilation), ("pad", self.pad), ("stride", self.stride))
        )

    def output_size(self, height: int, width: int, kernel: tuple[int, int]) -> tuple[int, int]:
        """Output height and width; the division is exact, as TOSA demands."""
        top, bottom, left, right = self.pad
        spans = (height + top + bottom - 1, width + left + right - 1)
        steps = [span - (size - 1) * d for span, size, d in zip(spans, kernel, self.dilation, strict=True)]
        assert all(step % stride == 0 for step, stride in zip(steps, self.stride, strict=True)), (self, steps)
        return steps[0] // self.stride[0] + 1, steps[1] // self.stride[1] + 1


def conv2d(builder: Builder, operands: Sequence[Value], zero_points: tuple[int, int], window: Window) -> Value:
    """CONV2D of i8 NHWC input, OHWI weight and i32 bias to i32; zero points of input and weight."""
    source, weight, _ = operands
    channels, height, width, _ = weight.shape
    size = window.output_size(source.shape[1], source.shape[2], (height, width))
    return _convolution(builder, "conv2d", operands, zero_points, window, (source.shape[0], *size, channels))


def depthwise_conv2d(
    builder: Builder, operands: Sequence[Value], zero_points: tuple[int, int], window: Window
) -> Value:
    """DEPTHWISE_CONV2D of i8 NHWC input, HWCM weight and i32 bias to i32; channel ``c * M + m``."""
    source, weight, _ = operands
    height, width, channels, multiplier = weight.shape
    size = window.output_size(source.shape[1], source.shape[2], (height, width))
    shape = (source.shape[0], *size, channels * multiplier)
    return _convolution(builder, "depthwise_conv2d", operands, zero_points, window, shape)


def rescale(builder: Builder, source: Value, scale: Rescale, zero_points: tuple[int, int], element: str) -> Value:
    """RESCALE with SINGLE_ROUND; several multipliers go along the last dimension. Zero points of input and output."""
    multipliers = np.array(scale.multipliers, np.int32 if scale.scale32 else np.int16)
    operands = (
        source,
        builder.constant(multipliers),
        builder.constant(np.full(multipliers.shape, scale.shift, np.int8)),
        builder.scalar(zero_points[0], source.element),
        builder.scalar(zero_points[1], element),
    )
    attributes = (
        f"scale32 = {_boolean(scale.scale32)}, rounding_mode = SINGLE_ROUND, "
        f"per_channel = {_boolean(multipliers.size > 1)}, input_unsigned = false, output_unsigned = false"
    )
    return builder.operation("rescale", operands, attributes, source.shape, element)


def clamp(builder: Builder, source: Value, low: int, high: int) -> Value:
    """CLAMP to integer bounds of the value's own type."""
    attributes = f"min_val = {low} : {source.element}, max_val = {high} : {source.element}"
    return builder.operation("clamp", (source,), attributes, source.shape, source.element)


def multiply(builder: Builder, left: Value, right: Value) -> Value:
    """MUL of i32 values without a shift."""
    operands = (left, right, builder.scalar(0, "i8"))
    return builder.operation("mul", operands, "", broadcast(left, right), "i32")


def binary(builder: Builder, name: str, left: Value, right: Value) -> Value:
    """An elementwise operation of two values of one type (add, sub, intdiv, logical_right_shift, maximum ...)."""
    return builder.operation(name, (left, right), "", broadcast(left, right), left.element)


def shift_right(builder: Builder, source: Value, amount: Value, rounded: bool) -> Value:
    """ARITHMETIC_RIGHT_SHIFT, rounding half up where ``rounded``."""
    attributes = f"round = {_boolean(rounded)}"
    shape = broadcast(source, amount)
    return builder.operation("arithmetic_right_shift", (source, amount), attributes, shape, source.element)


def count_leading_zeros(builder: Builder, source: Value) -> Value:
    """CLZ of i32."""
    return builder.operation("clz", (source,), "", source.shape, "i32")


def cast(builder: Builder, source: Value, element: str) -> Value:
    """CAST between integer types (sign extending or truncating)."""
    return builder.operation("cast", (source,), "", source.shape, element)


def reduce(builder: Builder, name: str, source: Value, axis: int) -> Value:
    """REDUCE_SUM or REDUCE_MAX along one axis, which keeps size 1."""
    shape = tuple(1 if index == axis else size for index, size in enumerate(source.shape))
    return builder.operation(f"reduce_{name}", (source,), f"axis = {axis} : i32", shape, source.element)


def gather(builder: Builder, table: Value, indices: Value) -> Value:
    """GATHER: ``table`` [N, K, C] by i32 ``indices`` [N, W] to [N, W, C]."""
    shape = (indices.shape[0], indices.shape[1], table.shape[2])
    return builder.operation("gather", (table, indices), "", shape, table.element)


def table(builder: Builder, source: Value, entries: Value) -> Value:
    """TABLE: ``entries`` i8 [256] at ``source + 128``."""
    return builder.operation("table", (source, entries), "", source.shape, "i8")


def argmax(builder: Builder, source: Value, axis: int) -> Value:
    """ARGMAX along one axis, which goes; the first of equal values."""
    shape = (*source.shape[:axis], *source.shape[axis + 1 :])
    return builder.operation("argmax", (source,), f"axis = {axis} : i32", shape, "i32")


def max_pool2d(builder: Builder, source: Value, kernel: tuple[int, int], window: Window) -> Value:
    """MAX_POOL2D of i8 NHWC input; pads never win."""
    height, width = window.output_size(source.shape[1], source.shape[2], kernel)
    attributes = f"kernel = {_array(kernel)}, pad = {_array(window.pad)}, stride = {_array(window.stride)}"
    shape = (source.shape[0], height, width, source.shape[3])
    return builder.operation("max_pool2d", (source,), attributes, shape, source.element)


def transpose(builder: Builder, source: Value, order: Sequence[int]) -> Value:
    """TRANSPOSE: result dimension i is source dimension ``order[i]``."""
    shape = tuple(source.shape[index] for index in order)
    perms = ", ".join(map(str, order))
    return builder.operation("transpose", (source,), f"perms = array<i32: {perms}>", shape, source.element)


def reorder(builder: Builder, source: Value, order: Sequence[int]) -> Value:
    """A transpose; a reshape where only dimensions of size 1 move, nothing where none do."""
    moved = [index for index in order if source.shape[index] != 1]
    if moved == sorted(moved):
        return builder.view(source, tuple(source.shape[index] for index in order))
    return transpose(builder, source, order)


def reverse(builder: Builder, source: Value, axis: int) -> Value:
    """REVERSE along one axis."""
    return builder.operation("reverse", (source,), f"axis = {axis} : i32", source.shape, source.element)


def pad(builder: Builder, source: Value, pads: Sequence[int], fill: int) -> Value:
    """PAD with ``fill``; ``pads`` are (before, after) of every dimension in turn."""
    before, after = pads[::2], pads[1::2]
    shape = tuple(low + size + high for low, size, high in zip(before, source.shape, after, strict=True))
    operands = (source, builder.shape_constant(pads), builder.scalar(fill, source.element))
    return builder.operation("pad", operands, "", shape, source.element)


def slice_(builder: Builder, source: Value, start: Sequence[int], size: Shape) -> Value:
    """SLICE of ``size`` elements from ``start``, nothing where it is the whole."""
    if source.shape == size:
        return source
    operands = (source, builder.shape_constant(start), builder.shape_constant(size))
    return builder.operation("slice", operands, "", size, source.element)


def concat(builder: Builder, sources: Sequence[Value], axis: int) -> Value:
    """CONCAT along an axis, nothing for a single source."""
    first = sources[0]
    if len(sources) == 1:
        return first
    size = sum(source.shape[axis] for source in sources)
    shape = (*first.shape[:axis], size, *first.shape[axis + 1 :])
    return builder.operation("concat", sources, f"axis = {axis} : i32", shape, first.element)


def matmul(builder: Builder, left: Value, right: Value, zero_points: tuple[int, int]) -> Value:
    """MATMUL of i8 [n, rows, k] and [n, k, columns] to i32; zero points of both."""
    zeros = [builder.scalar(zero_point, "i8") for zero_point in zero_points]
    shape = (*left.shape[:2], right.shape[2])
    return builder.operation("matmul", (left, right, *zeros), "", shape, "i32")


def tile(builder: Builder, source: Value, shape: Shape) -> Value:
    """TILE dimensions of 1 up to ``shape``, nothing where it has that shape."""
    if source.shape == shape:
        return source
    counts = tuple(size // own for size, own in zip(shape, source.shape, strict=True))
    return builder.operation("tile", (source, builder.shape_constant(counts)), "", shape, source.element)


def broadcast(left: Value, right: Value) -> Shape:
    """The shape of an elementwise result of two values of one rank."""
    assert len(left.shape) == len(right.shape), (left, right)
    return tuple(max(sizes) if min(sizes) else 0 for sizes in zip(left.shape, right.shape, strict=True))


def _convolution(
    builder: Builder,
    name: str,
    operands: Sequence[Value],
    zero_points: tuple[int, int],
    window: Window,
    shape: Shape,
) -> Value:
    zeros = [builder.scalar(zero_point, "i8") for zero_point in zero_points]
    return builder.operation(name, (*operands, *zeros), f"acc_type = i32, {window.attributes}", shape, "i32")


def _array(values: Sequence[int]) -> str:
    return f"array<i64: {', '.join(map(str, values))}>"


def _boolean(value: bool) -> str:
    return "true" if value else "false"
