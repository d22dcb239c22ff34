"""Small QDQ graphs, good or broken, to be judged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import TensorProto, helper

TYPES = {
    "u8": TensorProto.UINT8,
    "s8": TensorProto.INT8,
    "u16": TensorProto.UINT16,
    "s16": TensorProto.INT16,
    "s32": TensorProto.INT32,
    "s4": TensorProto.INT4,
    "u4": TensorProto.UINT4,
}
Scales = float | Sequence[float]


class Build:
    """Adds Q, DQ and ops one after another; names count up."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        self.count = 0

    def name(self, base: str) -> str:
        self.count += 1
        return f"{base}{self.count}"

    def floats(self, *shape: int | str) -> str:
        """A float input of the model."""
        name = self.name("x")
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape)))
        return name

    def integers(self, *shape: int) -> str:
        """An int64 input of the model."""
        name = self.name("i")
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.INT64, list(shape)))
        return name

    def constant(self, values: Any, dtype: Any = np.int64) -> str:
        name = self.name("c")
        self.initializers.append(onnx.numpy_helper.from_array(np.array(values, dtype), name))
        return name

    def encoding(self, dtype: str, scale: Scales, zero_point: int) -> list[str]:
        """Scale and zero point as initializers."""
        scales = np.array(scale, np.float32)
        zeros = helper.make_tensor(self.name("zp"), TYPES[dtype], scales.shape, [zero_point] * scales.size)
        self.initializers.append(zeros)
        return [self.constant(scales, np.float32), zeros.name]

    def quantize(self, value: str, dtype: str = "u8", scale: Scales = 0.1, zero_point: int = 0, **axis: int) -> str:
        return self.node("QuantizeLinear", [value, *self.encoding(dtype, scale, zero_point)], **axis)

    def pair(self, value: str, dtype: str = "u8", scale: Scales = 0.1, zero_point: int = 0, **axis: int) -> str:
        """Q and DQ after a value; what the DQ gives."""
        quantized = self.quantize(value, dtype, scale, zero_point, **axis)
        return self.node("DequantizeLinear", [quantized, *self.encoding(dtype, scale, zero_point)], **axis)

    def data(self, *shape: int | str, **encoding: Any) -> str:
        """A quantized input of the model."""
        return self.pair(self.floats(*shape), **encoding)

    def weights(
        self, shape: Sequence[int], dtype: str = "s8", scale: Scales = 0.1, zero_point: int = 0, **axis: int
    ) -> str:
        """Integers of the model, read through a DQ."""
        name = self.name("w")
        self.initializers.append(helper.make_tensor(name, TYPES[dtype], shape, [1] * int(np.prod(shape))))
        return self.node("DequantizeLinear", [name, *self.encoding(dtype, scale, zero_point)], **axis)

    def node(self, op_type: str, inputs: Sequence[str], **attributes: Any) -> str:
        return self.nodes_of(op_type, inputs, 1, **attributes)[0]

    def nodes_of(self, op_type: str, inputs: Sequence[str], outputs: int, **attributes: Any) -> list[str]:
        """An op of several results."""
        names = [self.name("v") for _ in range(outputs)]
        self.nodes.append(helper.make_node(op_type, inputs, names, f"{op_type}_{names[0]}", **attributes))
        return names

    def output(self, value: str) -> None:
        self.outputs.append(helper.make_empty_tensor_value_info(value))

    def result(self, value: str, dtype: str = "u8", scale: Scales = 0.1, zero_point: int = 0) -> None:
        """Q and DQ after a value, and what they give as an output of the model."""
        self.output(self.pair(value, dtype, scale, zero_point))

    def graph(self) -> ir.Graph:
        made = helper.make_graph(self.nodes, "g", self.inputs, self.outputs, self.initializers)
        model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 23)])
        return ir.from_proto(onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)).graph
