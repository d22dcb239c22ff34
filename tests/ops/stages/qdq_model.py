"""A unit graph as the QDQ model that it stands for, and as the float model between its Q and DQ."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from hexqdq.ops.elementwise.program import INPUT, Program
from hexqdq.ops.elementwise.table import CHAIN
from hexqdq.ops.unit import Array, Clamp, QuantUnit, Tensor, UnitGraph
from hexqdq.qtypes import QType, QuantParams

OPSET = 21
ELEMENTS = {
    QType.U8: TensorProto.UINT8,
    QType.S8: TensorProto.INT8,
    QType.S32: TensorProto.INT32,
    QType.S64: TensorProto.INT64,
    QType.F32: TensorProto.FLOAT,
}


class QdqWriter:
    """Writes DQ -> op -> (bias) -> (activation) -> Q for every unit; in float only constants keep their DQ."""

    def __init__(self, is_float: bool = False) -> None:
        self.is_float = is_float
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def model(self, graph: UnitGraph) -> onnx.ModelProto:
        """The model over the graph's inputs and outputs."""
        for unit in graph.units:
            self._unit(unit)
        inputs, outputs = (
            [helper.make_tensor_value_info(t.name, self._element(t), t.shape) for t in tensors]
            for tensors in (graph.inputs, graph.outputs)
        )
        proto = helper.make_graph(self.nodes, "ladder", inputs, outputs, self.initializers)
        model = helper.make_model(proto, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
        onnx.checker.check_model(model)
        return model

    def _element(self, tensor: Tensor) -> int:
        return TensorProto.FLOAT if self.is_float and tensor.params is not None else ELEMENTS[tensor.dtype]

    def _unit(self, unit: QuantUnit) -> None:
        data = unit.inputs[: 1 if unit.op_type in ("Relu", "Clip") else None]
        inputs = [self._real(unit, tensor) if tensor is not None else "" for tensor in data]
        if len(unit.outputs) > 1:
            names = [f"{tensor.name}_real" for tensor in unit.outputs]
            attributes: dict[str, Any] = dict(unit.attributes)
            self.nodes.append(helper.make_node(unit.op_type, inputs, names, **attributes))
        else:
            names = [self._operation(unit, inputs)]
        for name, tensor in zip(names, unit.outputs, strict=True):
            self._leave(name, tensor)

    def _leave(self, name: str, tensor: Tensor) -> None:
        """A result under the tensor's name, quantized where that has parameters."""
        if self.is_float or tensor.params is None:
            self.nodes.append(helper.make_node("Identity", [name], [tensor.name]))
            return
        scale, zero_point, axis = self._parameters(tensor.name, tensor.params)
        self.nodes.append(helper.make_node("QuantizeLinear", [name, scale, zero_point], [tensor.name], **axis))

    def _operation(self, unit: QuantUnit, inputs: Sequence[str]) -> str:
        """The op, a MatMul's bias as an Add, the clamp as Relu or Clip; the result's name."""
        if unit.op_type in ("Relu", "Clip"):
            name = inputs[0]
        elif unit.op_type == CHAIN:
            name = self._chain(unit, inputs[0])
        else:
            bias = inputs[2:] if unit.op_type == "MatMul" else []
            data = inputs[:2] if unit.op_type == "MatMul" else inputs
            name = self._node(unit, unit.op_type, data, dict(unit.attributes))
            for value in bias:
                name = self._node(unit, "Add", [name, value], {})
        return name if unit.clamp is None else self._clamp(unit, name, unit.clamp)

    def _chain(self, unit: QuantUnit, source: str) -> str:
        """The steps of a chain as nodes; the last one's name."""
        made: list[str] = []
        for number, step in enumerate(Program.from_text(str(unit.attributes["program"])).steps):
            inputs = []
            for index, operand in enumerate(step.operands):
                if isinstance(operand, float):
                    key = f"{unit.name}_{number}_{index}"
                    inputs.append(self._initializer(key, np.array(operand, np.float32)))
                else:
                    inputs.append("" if operand is None else source if operand == INPUT else made[operand])
            made.append(self._node(unit, step.op_type, inputs, dict(step.attributes)))
        return made[-1]

    def _clamp(self, unit: QuantUnit, name: str, clamp: Clamp) -> str:
        if clamp.low == 0 and math.isinf(clamp.high):
            return self._node(unit, "Relu", [name], {})
        bounds = [
            self._initializer(f"{unit.name}_{side}", np.array(value, np.float32)) if math.isfinite(value) else ""
            for side, value in (("low", clamp.low), ("high", clamp.high))
        ]
        return self._node(unit, "Clip", [name, *bounds], {})

    def _node(self, unit: QuantUnit, op_type: str, inputs: Iterable[str], attributes: dict[str, Any]) -> str:
        name = f"{unit.name}_real{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, list(inputs), [name], **attributes))
        return name

    def _real(self, unit: QuantUnit, tensor: Tensor) -> str:
        if tensor.name in unit.constants:
            self._initializer(tensor.name, unit.constants[tensor.name])
        is_input = tensor.name not in unit.constants
        if tensor.params is None or (self.is_float and is_input):
            return tensor.name
        name = f"{tensor.name}_dq{len(self.nodes)}"
        scale, zero_point, axis = self._parameters(tensor.name, tensor.params)
        self.nodes.append(helper.make_node("DequantizeLinear", [tensor.name, scale, zero_point], [name], **axis))
        return name

    def _parameters(self, name: str, params: QuantParams) -> tuple[str, str, dict[str, Any]]:
        scales, zero_points = params.scales(), params.zero_points()
        if params.axis is None:
            scales, zero_points = scales.reshape(()), zero_points.reshape(())
        axis: dict[str, Any] = {} if params.axis is None else {"axis": params.axis}
        return self._initializer(f"{name}_scale", scales), self._initializer(f"{name}_zero", zero_points), axis

    def _initializer(self, name: str, values: Array) -> str:
        if all(known.name != name for known in self.initializers):
            self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(values).reshape(values.shape), name))
        return name
