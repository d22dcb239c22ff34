"""Planted faults for each rule, as far as can be the only thing wrong with their graph; and graphs without fault."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from hexqdq.app.rules import qnn
from tests.app.rules.build import Build

Case = Callable[[Build], None]
UNIT = {"scale": 1 / 256}
WIDE_UNIT = {"dtype": "u16", "scale": 1 / 65536}
OTHER = {"scale": 0.2}


def unary(op_type: str, result: dict[str, Any] | None = None, **attributes: Any) -> Case:
    """An op on one quantized input."""

    def case(b: Build) -> None:
        b.result(b.node(op_type, [b.data(1, 4, 8, 8)], **attributes), **(result or {}))

    return case


def conv(
    x: dict[str, Any] | None = None, w: dict[str, Any] | None = None, y: dict[str, Any] | None = None, bias: str = "s32"
) -> Case:
    def case(b: Build) -> None:
        weights = b.weights((4, 3, 1, 1), **(w or {"scale": [0.1] * 4, "axis": 0}))
        add = b.constant([0.0] * 4, np.float32) if bias == "float" else b.weights((4,), bias, 0.01)
        b.result(b.node("Conv", [b.data(1, 3, 8, 8, **(x or {})), weights, add]), **(y or {}))

    return case


def gemm(**attributes: float) -> Case:
    def case(b: Build) -> None:
        inputs = [b.data(2, 4), b.weights((4, 5), scale=[0.1] * 5, axis=1), b.weights((5,), "s32", 0.01)]
        b.result(b.node("Gemm", inputs, **attributes))

    return case


def matmul(x: dict[str, Any], w: dict[str, Any], rows: int = 64) -> Case:
    def case(b: Build) -> None:
        b.result(b.node("MatMul", [b.data(2, rows, **x), b.weights((rows, 5), **w)]), **x)

    return case


def blocks(size: int, dtype: str = "s4", axis: int = 0) -> Case:
    def case(b: Build) -> None:
        scale = np.full((64 // size, 5), 0.1) if axis == 0 else np.full((64, 5), 0.1)
        weights = b.weights((64, 5), dtype, scale.tolist(), block_size=size if axis == 0 else 1, axis=axis)
        b.result(b.node("MatMul", [b.data(2, 64), weights]))

    return case


def layer_norm(axis: int = -1, bias: str = "s32", y: dict[str, Any] | None = None) -> Case:
    def case(b: Build) -> None:
        shape = (8,) if axis == -1 else (4, 8)
        inputs = [b.data(2, 4, 8), b.weights(shape, "u8"), b.weights(shape, bias, 0.01)]
        b.result(b.node("LayerNormalization", inputs, axis=axis), **(y or {}))

    return case


def rms_norm(*shape: int, axis: int = -1) -> Case:
    def case(b: Build) -> None:
        inputs = [b.data(*shape), b.weights(shape[axis:], "u8")]
        b.result(b.node("RMSNormalization", inputs, axis=axis))

    return case


def with_parameters(op_type: str, *parameters: Any, computed: bool = False, **attributes: Any) -> Case:
    """A data op with int64 parameters, constant or computed; None leaves one out."""

    def case(b: Build) -> None:
        inputs = [b.data(1, 2, 8)]
        for values in parameters:
            inputs.append("" if values is None else b.integers(len(values)) if computed else b.constant(values))
        made = b.nodes_of(op_type, inputs, 2 if op_type == "Split" else 1, **attributes)
        for value in made:
            b.result(value)

    return case


def pad(value: bool = True) -> Case:
    def case(b: Build) -> None:
        fill = [b.weights((), "u8")] if value else []
        b.result(b.node("Pad", [b.data(1, 8), b.constant([0, 1, 0, 1]), *fill]))

    return case


def resize(**attributes: Any) -> Case:
    def case(b: Build) -> None:
        sizes = b.constant([1, 2, 4, 4])
        b.result(b.node("Resize", [b.data(1, 2, 8, 8), "", "", sizes], mode="linear", **attributes))

    return case


def cumsum(**attributes: int) -> Case:
    def case(b: Build) -> None:
        b.result(b.node("CumSum", [b.data(2, 8), b.constant(1)], **attributes))

    return case


def top(y: dict[str, Any] | None = None) -> Case:
    def case(b: Build) -> None:
        values, indices = b.nodes_of("TopK", [b.data(2, 8), b.constant([3])], 2)
        b.result(values, **(y or {}))
        b.output(indices)

    return case


def binary(op_type: str, x: dict[str, Any] | None = None) -> Case:
    def case(b: Build) -> None:
        b.result(b.node(op_type, [b.data(2, 8), b.data(2, 8, **(x or OTHER))]), scale=0.3)

    return case


def of_three(op_type: str, y: dict[str, Any] | None = None) -> Case:
    """Where, and ScatterElements: a choice or places besides the data."""

    def case(b: Build) -> None:
        left, right = b.data(2, 8), b.data(2, 8, scale=0.2)
        if op_type == "Where":
            inputs = [b.node("Not", [b.node("Cast", [b.integers(2, 8)], to=onnx.TensorProto.BOOL)]), left, right]
        else:
            inputs = [left, b.integers(2, 8), right]
        b.result(b.node(op_type, inputs), **(y or {}))

    return case


def compare(x: dict[str, Any] | None = None) -> Case:
    def case(b: Build) -> None:
        b.output(b.node("Greater", [b.data(2, 8), b.data(2, 8, **(x or {}))]))

    return case


def index_result(b: Build) -> None:
    b.output(b.node("ArgMax", [b.data(2, 8)]))


def quantized_index(b: Build) -> None:
    """An index as a float, which only a Cast makes: here the Q reads the integers themselves."""
    b.output(b.quantize(b.node("ArgMax", [b.data(2, 8)]), "u8", 1.0))


def quantized_truth(b: Build) -> None:
    b.output(b.quantize(b.node("Greater", [b.data(2, 8), b.data(2, 8)]), "u8", 1.0))


def absorbed(b: Build) -> None:
    """Relu between an op and its Q."""
    b.result(b.node("Relu", [b.node("Add", [b.data(2, 8), b.data(2, 8)])]))


def float_input(b: Build) -> None:
    b.result(b.node("Sqrt", [b.floats(2, 8)]))


def float_result(b: Build) -> None:
    b.output(b.node("Sqrt", [b.data(2, 8)]))


def two_readers(b: Build) -> None:
    root = b.node("Sqrt", [b.data(2, 8)])
    b.result(root)
    b.result(root, scale=0.2)


def unknown(b: Build) -> None:
    b.result(b.node("Softsign", [b.data(2, 8)]))


def dynamic(b: Build) -> None:
    b.result(b.node("Sqrt", [b.data("batch", 8)]))


def inner_graph(b: Build) -> None:
    def branch(op_type: str) -> onnx.GraphProto:
        made = helper.make_node(op_type, [value], [f"{op_type}_out"])
        return helper.make_graph([made], op_type, [], [helper.make_empty_tensor_value_info(f"{op_type}_out")])

    value = b.data(2, 8)
    condition = b.constant(True, np.bool_)
    b.output(b.node("If", [condition], then_branch=branch("Sqrt"), else_branch=branch("Abs")))


def channels_of_data(b: Build) -> None:
    b.result(b.node("Sqrt", [b.data(2, 4, scale=[0.1] * 4, axis=1)]))


def channels_of_weights(b: Build) -> None:
    b.result(b.node("Mul", [b.data(2, 4), b.weights((2, 4), "u8", [0.1] * 4, axis=1)]))


def data_of_32_bits(b: Build) -> None:
    b.result(b.node("Sqrt", [b.data(2, 8, dtype="s32")]), "s32")


U16 = {"dtype": "u16"}
S8 = {"dtype": "s8"}
SHAPES: Sequence[Any] = ([1], [4], [2])

PLANTED: tuple[tuple[str, Case], ...] = (
    (qnn.READS, float_input),
    (qnn.GIVES, float_result),
    (qnn.GIVES, two_readers),
    (qnn.MOVES, unary("Transpose", OTHER, perm=[0, 2, 3, 1])),
    (qnn.MOVES, unary("MaxPool", OTHER, kernel_shape=[2, 2])),
    (qnn.MOVES, top(OTHER)),
    (qnn.SAME, unary("Sqrt", S8)),
    (qnn.SAME, conv(y=S8)),
    (qnn.SAME, layer_norm(y=S8)),
    (qnn.ALL_SAME, binary("Add", S8)),
    (qnn.ALL_SAME, binary("Max", U16)),
    (qnn.INDICES, quantized_index),
    (qnn.TRUTH, quantized_truth),
    (qnn.COMPARED, compare(S8)),
    (qnn.WEIGHT_TYPES, conv(w={"dtype": "u4"})),
    (qnn.S8_WEIGHTS, conv(x=S8, y=S8, w={"dtype": "u8"})),
    (qnn.WIDE_WEIGHTS, conv(x=U16, y=U16, w={"dtype": "u8"})),
    (qnn.WIDE_WEIGHTS, matmul(U16, {"zero_point": 1})),
    (qnn.BIAS, conv(bias="float")),
    (qnn.BIAS, conv(bias="u8")),
    (qnn.BIAS, layer_norm(bias="u8")),
    (qnn.CHANNEL_AXIS, conv(w={"scale": [0.1] * 3, "axis": 1})),
    (qnn.CHANNEL_AXIS, matmul({}, {"scale": [0.1] * 4, "axis": 0}, rows=4)),
    (qnn.BLOCKS, blocks(8)),
    (qnn.BLOCKS, blocks(32, "s8")),
    (qnn.CONV_RANK, lambda b: b.result(b.node("Conv", [b.data(1, 2, *[3] * 4), b.weights((2, 2, *[1] * 4))]))),
    (qnn.TWO_OF_THREE, of_three("Where", S8)),
    (qnn.TWO_OF_THREE, of_three("ScatterElements", S8)),
    (qnn.UNIT_INTERVAL, unary("Softmax")),
    (qnn.UNIT_INTERVAL, unary("Sigmoid", {"scale": 1 / 255})),
    (qnn.UNIT_INTERVAL, unary("HardSigmoid", {**UNIT, "zero_point": 1})),
    (qnn.MIDDLE, unary("Tanh", {"scale": 1 / 128})),
    (qnn.ALPHA, gemm(alpha=2.0)),
    (qnn.BETA, gemm(beta=0.5)),
    (qnn.LAST_AXIS, layer_norm(axis=1)),
    (qnn.LAST_AXIS, rms_norm(2, 4, 8, axis=1)),
    (qnn.NORM_RANK, rms_norm(1, 1, 2, 4, 8)),
    (qnn.PARAMETERS, with_parameters("Slice", *SHAPES, computed=True)),
    (qnn.PARAMETERS, with_parameters("Split", [4, 4], computed=True, axis=2)),
    (qnn.PARAMETERS, with_parameters("Expand", [1, 2, 8], computed=True)),
    (qnn.PARAMETERS, with_parameters("Tile", [1, 1, 2], computed=True)),
    (qnn.FILL, pad(value=False)),
    (qnn.ANTIALIAS, resize(antialias=1)),
    (qnn.EXCLUSIVE, cumsum(exclusive=1)),
    (qnn.REVERSE, cumsum(reverse=1)),
    (qnn.TYPES, data_of_32_bits),
    (qnn.ONE_SCALE, channels_of_data),
    (qnn.STATIC, dynamic),
    (qnn.NO_GRAPH, inner_graph),
    (qnn.KNOWN_OPS, unknown),
    (qnn.LONE_CHANNELS, channels_of_weights),
)

GOOD: tuple[Case, ...] = (
    *(unary("Transpose", perm=[0, 2, 3, 1]), unary("MaxPool", kernel_shape=[2, 2]), top()),
    *(unary("Sqrt", OTHER), unary("AveragePool", OTHER, kernel_shape=[2, 2]), binary("Add"), binary("Max")),
    *(unary("Softmax", UNIT), unary("Sigmoid", UNIT), unary("Tanh", {"scale": 1 / 128, "zero_point": 128})),
    *(conv(), conv(x=S8, y=S8), conv(x=U16, y=U16), gemm(), matmul({}, {}), blocks(16), blocks(64)),
    *(layer_norm(), rms_norm(2, 4, 8), pad(), resize(), cumsum(), compare(), index_result, absorbed),
    *(of_three("Where"), of_three("ScatterElements"), with_parameters("Slice", *SHAPES)),
    *(with_parameters("Split", [4, 4], axis=2), with_parameters("Expand", [1, 2, 8])),
    with_parameters("Tile", [1, 1, 2]),
)
