"""TOSA segments through the whole compiler: reference model == hosts == Hexagon under qemu."""

from __future__ import annotations

import numpy as np
import pytest

from hexqdq.compile.product import TosaSegment
from hexqdq.qtypes import QType
from tests.compile.running import check
from tests.compile.segments import Conv, Writer, conv_of, conv_segment, flat

CONVS = {
    "3x3": Conv(),
    "3x3_stride_2": Conv(size=(9, 9), stride=2),
    "dilation_2": Conv(pad=2, dilation=2),
    "1x1": Conv(kernel=1, pad=0, channels=40, filters=24),
    "1x1_stride_2": Conv(kernel=1, pad=0, stride=2, size=(7, 7)),
    "3_channels": Conv(channels=3, size=(12, 11)),
    "1_channel": Conv(channels=1, filters=5),
    "5_channels_1x1": Conv(channels=5, kernel=1, pad=0),
    "33_filters": Conv(filters=33),
    "160_filters": Conv(filters=160, size=(5, 5)),
    "300_filters": Conv(filters=300, kernel=1, pad=0, size=(3, 3)),
    "1_filter": Conv(filters=1),
    "weight_zero_point": Conv(weight_zero_point=-128),
    "weight_zero_point_high": Conv(weight_zero_point=127, zero_point=-128),
    "signed_edges": Conv(edge=QType.S8),
    "signed_edges_1x1": Conv(edge=QType.S8, kernel=1, pad=0),
    "scale_16": Conv(shift=21),
    "batch": Conv(batch=2),
    "one_pixel": Conv(size=(1, 1), kernel=1, pad=0, channels=64, filters=10),
    "depthwise": Conv(depthwise=True, filters=1, channels=24),
    "depthwise_stride_2": Conv(depthwise=True, filters=1, channels=144, stride=2, size=(9, 9)),
    "depthwise_5x5": Conv(depthwise=True, filters=1, channels=33, kernel=5, pad=2),
    "depthwise_multiplier": Conv(depthwise=True, filters=3, channels=8),
    "depthwise_weight_zero_point": Conv(depthwise=True, filters=1, channels=24, weight_zero_point=20),
    "depthwise_signed": Conv(depthwise=True, filters=1, channels=24, edge=QType.S8),
    "depthwise_1_channel": Conv(depthwise=True, filters=1, channels=1),
}


@pytest.mark.parametrize("case", CONVS.values(), ids=CONVS.keys())
def test_conv(case: Conv, qemu: str) -> None:
    check(conv_segment(case))


def residual() -> TosaSegment:
    """Two convolutions, the sum of the second and the input, and a depthwise one after it."""
    writer = Writer()
    value = writer.input((1, 8, 8, 16))
    first = conv_of(writer, value, Conv(channels=16, filters=24, kernel=1, pad=0), 1)
    second = conv_of(writer, first, Conv(channels=24, filters=16), 2)
    left, right = (writer.rescale(item, [16384], 14, (-5, 0), "i32") for item in (value, second))
    factors = [writer.literal(number, "i32", (1, 1, 1, 1)) for number in (21000, 30000)]
    shift = writer.literal(0, "i8")
    scaled = [
        writer.op("mul", [item, factor, shift], (1, 8, 8, 16), "i32")
        for item, factor in zip((left, right), factors, strict=True)
    ]
    total = writer.rescale(writer.op("add", scaled, (1, 8, 8, 16), "i32"), [20000], 30, (0, 7), "i8")
    clamped = writer.op("clamp", [total], (1, 8, 8, 16), "i8", "min_val = 7 : i8, max_val = 100 : i8")
    last = conv_of(writer, clamped, Conv(channels=16, filters=1, depthwise=True), 3)
    return writer.segment(last, clamped)


def pooled() -> TosaSegment:
    """A convolution, the mean over pixels, and a matrix product to 10 classes."""
    writer = Writer()
    value = conv_of(writer, writer.input((1, 8, 8, 16)), Conv(channels=16, filters=40), 1)
    wide = writer.rescale(value, [16384], 14, (-5, 0), "i32")
    rows = writer.op("reduce_sum", [wide], (1, 1, 8, 40), "i32", "axis = 1 : i32")
    total = writer.op("reduce_sum", [rows], (1, 1, 1, 40), "i32", "axis = 2 : i32")
    mean = writer.rescale(total, [17000], 20, (0, 3), "i8")
    last = conv_of(writer, mean, Conv(size=(1, 1), channels=40, filters=10, kernel=1, pad=0), 2)
    return writer.segment(writer.reshape(last, (1, 10)))


def movements() -> TosaSegment:
    """Slice, concat, transpose, pad and reshape, of both signs; a result is read inside too."""
    writer = Writer()
    one, other = writer.input((1, 6, 7, 5)), writer.input((1, 6, 7, 5), "i8", QType.S8)
    joined = writer.op("concat", [one, other], (1, 6, 14, 5), "i8", "axis = 2 : i32")
    start, size = writer.shape((0, 1, 2, 0)), writer.shape((1, 4, 9, 5))
    sliced = writer.op("slice", [joined, start, size], (1, 4, 9, 5), "i8")
    turned = writer.op("transpose", [sliced], (1, 5, 4, 9), "i8", "perms = array<i32: 0, 3, 1, 2>")
    amounts, value = writer.shape((0, 0, 1, 0, 0, 2, 3, 1)), writer.literal(-9, "i8")
    padded = writer.op("pad", [turned, amounts, value], (1, 6, 6, 13), "i8")
    flat_ = writer.reshape(other, flat((1, 6, 7, 5)))
    unsigned, signed = QType.U8, QType.S8
    return writer.segment(joined, padded, flat_, turned, edges=(unsigned, signed, signed, unsigned))


def integers() -> TosaSegment:
    """The integer operations of a softmax: maximum, gather, division, leading zeros and shifts."""
    writer = Writer()
    rows, shape = (2, 20), (2, 20)
    value = writer.input(shape)
    rng = np.random.default_rng(4)
    table = writer.constant(rng.integers(0, 2**20, (1, 256, 1)), "i32")
    wide = writer.rescale(value, [16384], 14, (0, 0), "i32")
    top = writer.op("reduce_max", [wide], (2, 1), "i32", "axis = 1 : i32")
    below = writer.op("sub", [top, wide], shape, "i32")
    places = writer.reshape(below, flat(shape))
    found = writer.op("gather", [table, places], (1, 40, 1), "i32")
    powers = writer.reshape(found, rows)
    total = writer.op("reduce_sum", [powers], (2, 1), "i32", "axis = 1 : i32")
    zeros = writer.op("clz", [total], (2, 1), "i32")
    one = writer.literal(1, "i32", (1, 1))
    fewer = writer.op("sub", [zeros, one], (2, 1), "i32")
    normal = writer.op("logical_left_shift", [total, fewer], (2, 1), "i32")
    inverse = writer.op("intdiv", [writer.literal(2**30, "i32", (1, 1)), total], (2, 1), "i32")
    quotient = writer.op("intdiv", [powers, normal], shape, "i32")
    halves = writer.op("arithmetic_right_shift", [powers, one], shape, "i32", "round = true")
    masked = writer.op("bitwise_and", [halves, writer.literal(1023, "i32", (1, 1))], shape, "i32")
    scaled = writer.op("mul", [masked, inverse, writer.literal(0, "i8")], shape, "i32")
    larger = writer.op("maximum", [scaled, quotient], shape, "i32")
    return writer.segment(writer.rescale(larger, [1 << 20], 36, (0, -128), "i8"), larger, zeros)


def tables() -> TosaSegment:
    """A table over 8 bits, a comparison with selection, a maximum pool and casts."""
    writer = Writer()
    value, other = writer.input((1, 6, 6, 9)), writer.input((1, 6, 6, 9))
    rng = np.random.default_rng(5)
    table = writer.literal(rng.permutation(256).astype(np.uint8).view(np.int8).tolist(), "i8", (256,))
    looked = writer.op("table", [value, table], (1, 6, 6, 9), "i8")
    words = [writer.op("cast", [item], (1, 6, 6, 9), "i32") for item in (looked, other)]
    greater = writer.op("greater", words, (1, 6, 6, 9), "i1")
    chosen = writer.op("select", [greater, looked, other], (1, 6, 6, 9), "i8")
    window = "kernel = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 2, 2>"
    pool = writer.op("max_pool2d", [chosen], (1, 3, 3, 9), "i8", window)
    return writer.segment(looked, chosen, pool)


def products() -> TosaSegment:
    """A matrix product of two computed tensors."""
    writer = Writer()
    left, right = writer.input((2, 5, 12)), writer.input((2, 12, 40))
    zero_points = [writer.literal(3, "i8"), writer.literal(-7, "i8")]
    sums = writer.op("matmul", [left, right, *zero_points], (2, 5, 40), "i32")
    return writer.segment(writer.rescale(sums, [1 << 30], 41, (0, -5), "i8"))


GRAPHS = {f.__name__: f for f in (residual, pooled, movements, integers, tables, products)}


@pytest.mark.parametrize("name", GRAPHS)
def test_graph(name: str, qemu: str) -> None:
    check(GRAPHS[name]())
