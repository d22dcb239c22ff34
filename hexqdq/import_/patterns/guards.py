"""Guards against numbers that do not occur."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hexqdq.import_.patterns.reading import array, dims, maker
from hexqdq.import_.patterns.rule import Builder, Found

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

    def build(builder: Builder) -> ir.Value:
        return data

    return Found((test, node), build)


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
