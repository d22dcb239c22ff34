"""Gelu and Mish from their parts."""

from __future__ import annotations

import math

import onnx_ir as ir

from hexqdq.import_.patterns.polynomial import leaves, polynomial, same
from hexqdq.import_.patterns.reading import between, dims, maker, operands
from hexqdq.import_.patterns.rule import Builder, Found

GELU_OPSET, MISH_OPSET = 20, 18
_SLOPE = math.sqrt(2 / math.pi)
_CUBE = 0.044715


def gelu(node: ir.Node) -> Found | None:
    """``0.5 x (1 + erf(x / sqrt(2)))``, and ``0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))``.

    Hendrycks, Gimpel 2016, "Gaussian Error Linear Units", section 2.
    """
    if node.op_type not in ("Mul", "Div", "Add"):
        return None
    nearby = leaves(node)
    for bend in nearby:
        function = maker(bend, "Erf", "Tanh")
        if function is None:
            continue
        for data in nearby:
            if data is bend or not same(polynomial(node.outputs[0], (data, bend)), {(1, 0): 0.5, (1, 1): 0.5}):
                continue
            inner = polynomial(function.inputs[0], (data,))
            if function.op_type == "Erf" and same(inner, {(1,): math.sqrt(0.5)}):
                return _found(node, data, "Gelu", GELU_OPSET, {"approximate": "none"})
            if function.op_type == "Tanh" and same(inner, {(1,): _SLOPE, (3,): _SLOPE * _CUBE}):
                return _found(node, data, "Gelu", GELU_OPSET, {"approximate": "tanh"})
    return None


def mish(node: ir.Node) -> Found | None:
    """``x tanh(log(1 + exp(x)))`` (Misra 2019, "Mish: A Self Regularized Non-Monotonic Activation Function")."""
    if node.op_type != "Mul":
        return None
    for data, bend in operands(node):
        function = maker(bend, "Tanh")
        inner = maker(function.inputs[0], "Softplus") if function is not None else None
        if inner is not None and inner.inputs[0] is data:
            return _found(node, data, "Mish", MISH_OPSET, {})
    return None


def _found(root: ir.Node, data: ir.Value, op_type: str, opset: int, attributes: dict[str, str]) -> Found | None:
    shape = dims(data)
    if shape is None or shape != dims(root.outputs[0]):
        return None

    def build(builder: Builder) -> ir.Value:
        return builder.op(op_type, [data], shape, attributes)

    return Found(between(root, (data,)), build, opset)
