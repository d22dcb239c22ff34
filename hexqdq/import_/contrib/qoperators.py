"""Integer operators with their scales among the inputs (QLinearConv and kin) as DQ -> float op -> Q."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

Inputs = list[ir.Value | None]


@dataclass(frozen=True)
class Form:
    """Where an operator keeps things among its inputs.

    ``operands`` are the positions of integers that a scale and a zero point follow, ``result`` that
    of the output's scale, ``bias`` that of an s32 bias of scale operand 0 x operand 1, ``plain``
    those that go to the float op as they are. ``weight_axis`` is where per-channel scales of operand
    1 lie, ``dropped`` are attributes that the float op does not have.
    """

    op_type: str
    operands: tuple[int, ...]
    result: int
    bias: int | None = None
    plain: tuple[int, ...] = ()
    weight_axis: int | None = None
    dropped: tuple[str, ...] = ()


_MICROSOFT = "com.microsoft"
FORMS: Mapping[tuple[str, str], Form] = {
    ("", "QLinearConv"): Form("Conv", (0, 3), 6, bias=8, weight_axis=0),
    ("", "QLinearMatMul"): Form("MatMul", (0, 3), 6, weight_axis=-1),
    (_MICROSOFT, "QLinearConv"): Form("Conv", (0, 3), 6, bias=8, weight_axis=0, dropped=("channels_last",)),
    (_MICROSOFT, "QGemm"): Form("Gemm", (0, 3), 7, bias=6, weight_axis=1),
    (_MICROSOFT, "QLinearAdd"): Form("Add", (0, 3), 6),
    (_MICROSOFT, "QLinearMul"): Form("Mul", (0, 3), 6),
    (_MICROSOFT, "QLinearGlobalAveragePool"): Form("GlobalAveragePool", (0,), 3, dropped=("channels_last",)),
    (_MICROSOFT, "QLinearAveragePool"): Form("AveragePool", (0,), 3, dropped=("channels_last",)),
    (_MICROSOFT, "QLinearSigmoid"): Form("Sigmoid", (0,), 3),
    (_MICROSOFT, "QLinearLeakyRelu"): Form("LeakyRelu", (0,), 3),
    (_MICROSOFT, "QLinearSoftmax"): Form("Softmax", (0,), 3, dropped=("opset",)),
    (_MICROSOFT, "QLinearWhere"): Form("Where", (1, 4), 7, plain=(0,)),
}
_CONCAT = (_MICROSOFT, "QLinearConcat")


def convert_qoperators(model: ir.Model) -> int:
    """Rewrites every operator of FORMS and QLinearConcat; one whose numbers are computed stays as it is."""
    converted = 0
    for node in list(model.graph):
        form = _form(node)
        if form is not None and _is_convertible(node, form):
            _Conversion(model.graph, node, form).write()
            converted += 1
    return converted


def _form(node: ir.Node) -> Form | None:
    if (node.domain, node.op_type) == _CONCAT:
        return Form("Concat", tuple(range(2, len(node.inputs), 3)), 0)
    form = FORMS.get((node.domain, node.op_type))
    by_rows = form is not None and form.op_type == "Gemm" and _int(node, "transB")
    return Form("Gemm", (0, 3), 7, bias=6, weight_axis=0) if by_rows else form


def _int(node: ir.Node, name: str) -> int:
    return node.attributes[name].as_int() if name in node.attributes else 0


def _is_convertible(node: ir.Node, form: Form) -> bool:
    """Constant scales, one for all but weights, and no layout or axis of its own kind."""
    if _int(node, "channels_last") or _input(node, form.result) is None:
        return False
    if form.op_type == "Softmax" and _int(node, "opset") < 13 and _int(node, "axis") != -1:
        return False
    scales = [_constant(_input(node, position + 1)) for position in form.operands]
    if any(scale is None for scale in scales):
        return False
    sizes = [scale.size for scale in scales if scale is not None]
    many = [index for index, size in enumerate(sizes) if size > 1]
    return not many or (many == [1] and form.weight_axis is not None)


def _input(node: ir.Node, position: int) -> ir.Value | None:
    return node.inputs[position] if position < len(node.inputs) else None


def _constant(value: ir.Value | None) -> NDArray[Any] | None:
    if value is None or value.const_value is None:
        return None
    return np.asarray(value.const_value.numpy())


class _Conversion:
    """One operator rewritten in place; the float op takes its name, the Q its output."""

    def __init__(self, graph: ir.Graph, node: ir.Node, form: Form) -> None:
        self.graph, self.node, self.form = graph, node, form
        self.made: list[ir.Node] = []

    def write(self) -> None:
        node, form = self.node, self.form
        inputs: Inputs = [node.inputs[position] for position in form.plain]
        inputs += [self._dequantized(index, position) for index, position in enumerate(form.operands)]
        if form.bias is not None and _input(node, form.bias) is not None:
            inputs.append(self._bias(form.bias))
        attributes = [a for name, a in node.attributes.items() if name not in form.dropped]
        op = self._add(ir.Node("", form.op_type, inputs, attributes, name=node.name), "real")
        leaving: Inputs = [op, node.inputs[form.result], _input(node, form.result + 1)]
        result = self._add(ir.Node("", "QuantizeLinear", leaving, name=f"{node.name}_quantize"), "quantized", None)
        self.graph.insert_before(node, self.made)
        output, name = node.outputs[0], node.outputs[0].name
        output.name = f"{name}_of_operator"
        result.type, result.shape = output.type, output.shape
        ir.convenience.replace_all_uses_with(output, result, replace_graph_outputs=True)
        self.graph.remove(node, safe=True)
        result.name = name

    def _dequantized(self, index: int, position: int) -> ir.Value:
        source, scale, zero_point = (_input(self.node, position + step) for step in range(3))
        many = _constant(scale)
        axis = self.form.weight_axis if many is not None and many.size > 1 else None
        return self._dequantize([source, scale, zero_point], axis, f"operand{index}")

    def _bias(self, position: int) -> ir.Value:
        """The bias with the scale that the operator implies."""
        scales = [_constant(_input(self.node, start + 1)) for start in self.form.operands]
        alpha = self.node.attributes["alpha"].as_float() if "alpha" in self.node.attributes else 1.0
        assert scales[0] is not None and scales[1] is not None
        product = np.asarray(scales[0].reshape(()) * scales[1] * np.float32(alpha), np.float32)
        product = product.reshape(()) if product.size == 1 else product
        scale = self._initializer("bias_scale", product)
        zero = self._initializer("bias_zero_point", np.zeros(product.shape, np.int32))
        return self._dequantize([self.node.inputs[position], scale, zero], 0 if product.ndim else None, "bias")

    def _dequantize(self, inputs: Inputs, axis: int | None, part: str) -> ir.Value:
        attributes = [] if axis is None else [ir.AttrInt64("axis", axis)]
        name = f"{self.node.name}_{part}_dequantize"
        return self._add(ir.Node("", "DequantizeLinear", inputs, attributes, name=name), part)

    def _add(self, node: ir.Node, part: str, dtype: ir.DataType | None = ir.DataType.FLOAT) -> ir.Value:
        (output,) = node.outputs
        output.name = f"{self.node.outputs[0].name}_{part}"
        output.type = None if dtype is None else ir.TensorType(dtype)
        self.made.append(node)
        return output

    def _initializer(self, part: str, values: NDArray[Any]) -> ir.Value:
        name = f"{self.node.name}_{part}"
        tensor = ir.tensor(values, name=name)
        value = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(values.shape), const_value=tensor)
        self.graph.register_initializer(value)
        return value
