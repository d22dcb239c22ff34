"""Softmax and LogSoftmax from their parts."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from hexqdq.import_.patterns.moments import kept
from hexqdq.import_.patterns.reading import axes, between, dims, floats, integer, maker, unviewed
from hexqdq.import_.patterns.rule import Builder, Found


def softmax(node: ir.Node) -> Found | None:
    """``exp(x - max(x)) / sum(exp(x - max(x)))`` along one axis; the maximum may be left out."""
    exponential = maker(node.inputs[0], "Exp") if node.op_type == "Div" else None
    total = maker(unviewed(node.inputs[1]), "ReduceSum") if exponential is not None else None
    if exponential is None or total is None or total.inputs[0] is not exponential.outputs[0]:
        return None
    over, shape = axes(total), dims(node.outputs[0])
    if over is None or len(over) != 1 or shape is None or dims(node.inputs[1]) != kept(shape, over):
        return None
    data = _data(exponential.inputs[0], over)
    return None if data is None or dims(data) != shape else _found(node, data, "Softmax", over[0])


def _data(value: ir.Value | None, over: tuple[int, ...]) -> ir.Value | None:
    """What is left of ``x - max(x)``."""
    difference = maker(value, "Sub")
    largest = maker(unviewed(difference.inputs[1]), "ReduceMax") if difference is not None else None
    shape = dims(value)
    if difference is None or largest is None or shape is None:
        return value
    data = difference.inputs[0]
    whole = largest.inputs[0] is data and axes(largest) == over and dims(difference.inputs[1]) == kept(shape, over)
    return data if whole else value


def log_softmax(node: ir.Node) -> Found | None:
    """``log(softmax(x))``."""
    inner = maker(node.inputs[0], "Softmax") if node.op_type == "Log" else None
    if inner is None or inner.inputs[0] is None:
        return None
    return _found(node, inner.inputs[0], "LogSoftmax", integer(inner, "axis", -1))


def _found(root: ir.Node, data: ir.Value, op_type: str, axis: int) -> Found:
    shape = dims(root.outputs[0]) or ()

    def build(builder: Builder) -> ir.Value:
        return builder.op(op_type, [data], shape, {"axis": axis})

    return Found(between(root, (data,)), build)


_CARRIES = (
    *("Add", "Where", "Cast", "Identity", "Reshape", "Transpose", "Unsqueeze", "Squeeze", "Expand", "Slice", "Concat"),
    *("Tile", "Gather"),
)
"""Ops through which a mask reaches a Softmax."""


def finite_mask(node: ir.Node) -> Found | None:
    """Minus infinity in a mask as the lowest number: a Softmax sees no difference but in rows that are masked whole.

    Such rows were no numbers and become even.
    """
    if node.op_type not in ("Add", "Where"):
        return None
    finite = [_finite(value) for value in node.inputs]
    if all(values is None for values in finite) or not _reaches_softmax(node):
        return None
    inputs = [value if values is None else values for value, values in zip(node.inputs, finite, strict=True)]
    shape = dims(node.outputs[0]) or ()
    return Found((node,), lambda builder: builder.op(node.op_type, inputs, shape))


def _finite(value: ir.Value | None) -> NDArray[np.float32] | None:
    """A constant that holds minus infinity with the lowest number there, None of any other."""
    values = floats(value)
    if values is None or not np.isneginf(values).any() or np.isnan(values).any() or np.isposinf(values).any():
        return None
    return np.asarray(np.maximum(values, np.finfo(np.float32).min))


def _reaches_softmax(node: ir.Node) -> bool:
    """Whether every way on from the node leads through what carries masks into a Softmax."""
    waiting, seen = [node], {node}
    while waiting:
        one = waiting.pop()
        readers = [use.node for use in one.outputs[0].uses()]
        if not readers or one.outputs[0].is_graph_output():
            return False
        for reader in readers:
            if reader.domain != "" or reader.op_type not in (*_CARRIES, "Softmax"):
                return False
            if reader.op_type != "Softmax" and reader not in seen:
                seen.add(reader)
                waiting.append(reader)
    return True
