"""Arithmetic with constants in its simplest form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from hexqdq.import_.patterns.reading import dims, floats, maker, operands, scalar
from hexqdq.import_.patterns.rule import Builder, Found


def bound(node: ir.Node) -> Found | None:
    """``max(x, c)`` and ``min(x, c)`` as a Clip, ``max(x, 0)`` as a Relu."""
    if node.op_type not in ("Max", "Min") or len(node.inputs) != 2:
        return None
    for data, constant in operands(node):
        limit, shape = scalar(constant), dims(data)
        if limit is not None and math.isfinite(limit) and shape is not None and shape == dims(node.outputs[0]):
            return _bounded(node, data, shape, limit)
    return None


def _bounded(node: ir.Node, data: ir.Value, shape: tuple[int, ...], limit: float) -> Found:
    def build(builder: Builder) -> ir.Value:
        value = np.array(limit, np.float32)
        if node.op_type == "Min":
            return builder.op("Clip", [data, None, value], shape)
        return builder.op("Clip", [data, value], shape) if limit else builder.op("Relu", [data], shape)

    return Found((node,), build)


def power(node: ir.Node) -> Found | None:
    """A power with a constant exponent as the op that it is: a product, a root, a reciprocal."""
    exponent = scalar(node.inputs[1]) if node.op_type == "Pow" else None
    data, shape = node.inputs[0] if node.inputs else None, dims(node.outputs[0])
    if data is None or shape is None or shape != dims(data) or exponent not in (2.0, 0.5, -1.0, -0.5, 3.0):
        return None

    def build(builder: Builder) -> ir.Value:
        match exponent:
            case 2.0:
                return builder.op("Mul", [data, data], shape)
            case 3.0:
                return builder.op("Mul", [builder.op("Mul", [data, data], shape), data], shape)
            case -1.0:
                return builder.op("Reciprocal", [data], shape)
        root = builder.op("Sqrt", [data], shape)
        return root if exponent == 0.5 else builder.op("Reciprocal", [root], shape)

    return Found((node,), build)


def quotient(node: ir.Node) -> Found | None:
    """A division by constants as a product, one of 1 as a reciprocal."""
    if node.op_type != "Div":
        return None
    data, divisor, shape = node.inputs[0], floats(node.inputs[1]), dims(node.outputs[0])
    if data is None or shape is None:
        return None
    if divisor is not None and divisor.size and _invertible(divisor):
        factor = np.asarray(1 / divisor.astype(np.float64), np.float32)
        return Found((node,), lambda builder: builder.op("Mul", [data, factor], shape))
    other = node.inputs[1]
    if scalar(data) == 1.0 and dims(other) == shape:
        return Found((node,), lambda builder: builder.op("Reciprocal", [other], shape))
    return None


def _invertible(divisor: NDArray[Any]) -> bool:
    """Whether 1 over every element is a normal number."""
    tiny, huge = 2.0**-120, 2.0**120
    return bool(np.isfinite(divisor).all() and (np.abs(divisor) > tiny).all() and (np.abs(divisor) < huge).all())


def twice(node: ir.Node) -> Found | None:
    """A constant added to, or multiplied with, what has another one added or multiplied already."""
    if node.op_type not in ("Add", "Mul"):
        return None
    for inner, constant in operands(node):
        before, outer = maker(inner, node.op_type), floats(constant)
        if before is None or outer is None or len(inner.uses()) != 1 or inner.is_graph_output():
            continue
        for data, held in operands(before):
            first, shape = floats(held), dims(node.outputs[0])
            if first is not None and shape is not None and shape == dims(data):
                return _once(node, before, data, first + outer if node.op_type == "Add" else first * outer)
    return None


def _once(node: ir.Node, before: ir.Node, data: ir.Value, values: NDArray[Any]) -> Found:
    shape = dims(node.outputs[0]) or ()
    made = np.asarray(values, np.float32)
    return Found((before, node), lambda builder: builder.op(node.op_type, [data, made], shape))
