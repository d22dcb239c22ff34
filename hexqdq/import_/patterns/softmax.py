"""Softmax and LogSoftmax from their parts."""

from __future__ import annotations

import onnx_ir as ir

from hexqdq.import_.patterns.moments import kept
from hexqdq.import_.patterns.reading import axes, between, dims, integer, maker, unviewed
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
