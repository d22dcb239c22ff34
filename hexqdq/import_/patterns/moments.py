"""Means, variances and the inverse of a deviation, as exporters write them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from hexqdq.import_.patterns.reading import axes, close, dims, integer, maker, operands, scalar, unviewed
from hexqdq.import_.patterns.rule import Builder, Found

Axes = tuple[int, ...]


@dataclass(frozen=True)
class Inverse:
    """``1 / sqrt(inner + epsilon)``, or ``sqrt(inner + epsilon)`` where ``divides`` says that it is a divisor."""

    inner: ir.Value
    epsilon: float
    divides: bool


def mean(value: ir.Value | None, over: Axes | None = None) -> tuple[ir.Value, Axes] | None:
    """What the value is the mean of, and over which axes."""
    value = unviewed(value)
    node = maker(value, "ReduceMean")
    if node is None or node.inputs[0] is None:
        return None
    found = axes(node)
    return None if found is None or over not in (None, found) else (node.inputs[0], found)


def square_of(value: ir.Value | None) -> ir.Value | None:
    """The root of ``x * x`` and of ``x ** 2``."""
    node = maker(unviewed(value), "Mul", "Pow")
    if node is None or node.inputs[0] is None:
        return None
    if node.op_type == "Pow":
        return node.inputs[0] if scalar(node.inputs[1]) == 2.0 else None
    left, right = unviewed(node.inputs[0]), unviewed(node.inputs[1])
    return node.inputs[0] if left is right else None


def deviation(value: ir.Value | None) -> tuple[ir.Value, Axes] | None:
    """``data - mean(data)``: the data and the axes."""
    node = maker(value, "Sub")
    found = mean(node.inputs[1]) if node is not None else None
    shape = dims(value)
    if node is None or found is None or shape is None or unviewed(found[0]) is not unviewed(node.inputs[0]):
        return None
    data, over = found
    broadcasts = dims(data) == shape and dims(node.inputs[1]) == kept(shape, over)
    return (data, over) if broadcasts else None


def kept(shape: Sequence[int], over: Axes) -> tuple[int, ...]:
    """The shape of a reduction that keeps its axes."""
    return tuple(1 if axis in over else size for axis, size in enumerate(shape))


def is_variance(value: ir.Value, data: ir.Value, over: Axes) -> bool:
    """``mean((data - mean(data))^2)``, or ``mean(data^2) - mean(data)^2``, which may be kept from going below 0."""
    value = _above_zero(value)
    squares = mean(value, over)
    centred = deviation(square_of(squares[0])) if squares is not None else None
    if centred is not None:
        return _is(centred[0], data) and centred[1] == over
    difference = maker(unviewed(value), "Sub")
    if difference is None or dims(difference.inputs[0]) != dims(difference.inputs[1]):
        return False
    squares, mean_square = mean(difference.inputs[0], over), square_of(difference.inputs[1])
    middle = mean(mean_square, over)
    return squares is not None and middle is not None and _is(square_of(squares[0]), data) and _is(middle[0], data)


def _above_zero(value: ir.Value) -> ir.Value:
    behind = unviewed(value)
    node = maker(behind, "Max", "Relu", "Clip")
    if node is None:
        return value
    if node.op_type == "Max" and len(node.inputs) == 2:
        return next((other for other, zero in operands(node) if scalar(zero) == 0), value)
    bounded = node.op_type == "Relu" or (
        node.op_type == "Clip" and len(node.inputs) == 2 and scalar(node.inputs[1]) == 0
    )
    return node.inputs[0] if bounded and node.inputs[0] is not None else value


def _is(value: ir.Value | None, data: ir.Value) -> bool:
    return value is not None and unviewed(value) is unviewed(data)


def inverse(value: ir.Value | None) -> Inverse | None:
    """``1 / sqrt(a + e)`` in its forms, or the bare ``sqrt(a + e)``."""
    node = maker(value, "Reciprocal", "Div", "Pow", "Sqrt")
    if node is None:
        return None
    if node.op_type == "Sqrt":
        return _inner(node.inputs[0], divides=True)
    if node.op_type == "Pow":
        return _inner(node.inputs[0], divides=False) if scalar(node.inputs[1]) == -0.5 else None
    if node.op_type == "Div" and scalar(node.inputs[0]) != 1.0:
        return None
    root = maker(unviewed(node.inputs[-1]), "Sqrt", "Pow")
    if root is None or (root.op_type == "Pow" and scalar(root.inputs[1]) != 0.5):
        return None
    return _inner(root.inputs[0], divides=False)


def _inner(value: ir.Value | None, *, divides: bool) -> Inverse | None:
    added = maker(unviewed(value), "Add")
    if added is None:
        return None
    for inner, constant in operands(added):
        epsilon = scalar(constant)
        if epsilon is not None and epsilon >= 0:
            return Inverse(inner, epsilon, divides)
    return None


def reduce_mean(node: ir.Node) -> Found | None:
    """A sum over axes divided by the number of what it sums."""
    for summed, factor in _scaled(node):
        total = maker(summed, "ReduceSum")
        data = total.inputs[0] if total is not None else None
        shape, over = dims(data), axes(total) if total is not None else None
        if total is None or data is None or shape is None or not over or dims(summed) != dims(node.outputs[0]):
            continue
        if close(factor * math.prod(shape[axis] for axis in over), 1.0):
            return _mean_of(node, total, data, over)
    return None


def _mean_of(node: ir.Node, total: ir.Node, data: ir.Value, over: Axes) -> Found:
    keeps, shape = bool(integer(total, "keepdims", 1)), dims(node.outputs[0]) or ()

    def build(builder: Builder) -> ir.Value:
        return builder.reduce("ReduceMean", data, over, keeps, shape)

    return Found((total, node), build)


def _scaled(node: ir.Node) -> Iterator[tuple[ir.Value, float]]:
    """The data and the factor of a product with a number."""
    if node.op_type == "Mul":
        for data, constant in operands(node):
            factor = scalar(constant)
            if factor is not None:
                yield data, factor
    if node.op_type == "Div" and node.inputs[0] is not None and (divisor := scalar(node.inputs[1])):
        yield node.inputs[0], 1 / divisor
