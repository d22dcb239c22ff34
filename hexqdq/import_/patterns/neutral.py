"""Nodes that change no element."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from hexqdq.import_.patterns.reading import array, dims, floats, maker, operands
from hexqdq.import_.patterns.rule import Builder, Found


def neutral(node: ir.Node) -> Found | None:
    """What changes nothing: times 1, plus 0, the larger of x and -infinity, an Expand to the shape at hand."""
    for data in _unchanged(node):
        if dims(data) is not None and dims(data) == dims(node.outputs[0]) and data.dtype == node.outputs[0].dtype:
            return _shows(node, data)
    return None


def _shows(node: ir.Node, data: ir.Value) -> Found:
    def build(builder: Builder) -> ir.Value:
        return data

    return Found((node,), build)


def _unchanged(node: ir.Node) -> list[ir.Value]:
    """Inputs whose elements the node's output holds."""
    none = {"Mul": 1.0, "Add": 0.0, "Max": -math.inf, "Min": math.inf}
    if node.op_type in none and len(node.inputs) == 2:
        return [data for data, constant in operands(node) if _all(constant, none[node.op_type])]
    data = node.inputs[0] if node.inputs else None
    if data is None:
        return []
    if node.op_type in ("Sub", "Div") and _all(node.inputs[1], 0.0 if node.op_type == "Sub" else 1.0):
        return [data]
    perm = node.attributes["perm"].as_ints() if "perm" in node.attributes else None
    stays = node.op_type == "Transpose" and perm is not None and list(perm) == list(range(len(perm)))
    return [data] if stays or (node.op_type in ("Expand", "Reshape", "Slice") and _forward(node)) else []


def _all(value: ir.Value | None, number: float) -> bool:
    values = floats(value)
    return values is not None and values.size > 0 and bool((values == number).all())


def _forward(node: ir.Node) -> bool:
    """Whether a Slice, of which nothing is left out, goes forward."""
    if node.op_type != "Slice" or len(node.inputs) < 5 or node.inputs[4] is None:
        return True
    steps = array(node.inputs[4])
    return steps is not None and bool((steps > 0).all())


def repeated(node: ir.Node) -> Found | None:
    """An Expand before ops that broadcast on their own."""
    if node.op_type != "Expand":
        return None
    source, result = node.inputs[0], node.outputs[0]
    uses = result.uses()
    if source is None or result.is_graph_output() or not uses:
        return None
    for use in uses:
        others = [dims(value) for value in use.node.inputs if value is not result]
        shapes = [dims(source), *others]
        if use.node.op_type not in _BROADCASTING or use.node.domain != "" or None in shapes:
            return None
        if _broadcast(shapes) != dims(use.node.outputs[0]):
            return None
    return _shows(node, source)


_BROADCASTING = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Where", "Equal", "Less", "Greater", "And", "Or")


def _broadcast(shapes: list[tuple[int, ...] | None]) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(*(shape for shape in shapes if shape is not None))
    except ValueError:
        return None


_FINITE = ("MatMul", "Gemm", "Conv", "LayerNormalization", "RMSNormalization", "Gather")
"""Ops whose results are finite in a model that works."""
_PASSING = (
    *(
        "Add",
        "Sub",
        "Mul",
        "Neg",
        "Where",
        "Min",
        "Max",
        "Clip",
        "Cast",
        "Not",
        "And",
        "Or",
        "Equal",
        "Less",
        "Greater",
    ),
    *("Reshape", "Transpose", "Unsqueeze", "Squeeze", "Expand", "Slice", "Concat", "Identity"),
)
"""Ops that give finite numbers where their inputs are finite."""


def nan_guard(node: ir.Node) -> Found | None:
    """``where(isnan(softmax(x)), number, softmax(x))``: a row of it is NaN where all of x is minus infinity."""
    if node.op_type != "Where" or len(node.inputs) != 3:
        return None
    test, data = maker(node.inputs[0], "IsNaN"), node.inputs[2]
    source = maker(data, "Softmax")
    if test is None or data is None or source is None or test.inputs[0] is not data:
        return None
    if dims(data) is None or dims(data) != dims(node.outputs[0]) or not _is_finite(source.inputs[0], 12):
        return None

    return _shows(node, data)


def _is_finite(value: ir.Value | None, depth: int) -> bool:
    """Whether no constant that enters is infinite, as far back as products of matrices and the inputs."""
    values = array(value)
    if values is not None:
        return values.dtype.kind != "f" or bool(np.isfinite(values).all())
    node = value.producer() if value is not None else None
    if node is None or (node.domain == "" and node.op_type in _FINITE):
        return True
    if node.domain != "" or not depth or node.op_type not in _PASSING:
        return value is not None and value.dtype is not None and not value.dtype.is_floating_point()
    return all(_is_finite(one, depth - 1) for one in node.inputs if one is not None)
