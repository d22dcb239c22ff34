"""The length of vectors as one op: between a square and its root stands nothing that would need a scale."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hexqdq.import_.patterns.moments import square_of
from hexqdq.import_.patterns.reading import axes, dims, integer, maker, operands, scalar
from hexqdq.import_.patterns.rule import Builder, Found

NEGLIGIBLE = 1e-12
"""Added under a root, it moves the length by a millionth at most."""


def length(node: ir.Node) -> Found | None:
    """The root of a sum of squares over axes, and of two squares, which are put side by side."""
    total = _without_addend(node.inputs[0]) if node.op_type == "Sqrt" else None
    if total is None:
        return None
    if total.op_type == "Add":
        return _of_two(node, total)
    data, over, shape = square_of(total.inputs[0]), axes(total), dims(node.outputs[0])
    if data is None or over is None or shape is None or dims(data) != dims(total.inputs[0]):
        return None
    keeps = bool(integer(total, "keepdims", 1))
    return Found((total, node), lambda builder: builder.reduce("ReduceL2", data, over, keeps, shape))


def _without_addend(value: ir.Value | None) -> ir.Node | None:
    """The sum under the root, what is added against a root of 0 left out."""
    node = maker(value, "Add", "ReduceSum")
    if node is not None and node.op_type == "Add":
        for inner, constant in operands(node):
            addend = scalar(constant)
            if addend is not None:
                return maker(inner, "Add", "ReduceSum") if 0 <= addend <= NEGLIGIBLE else None
    return node


def _of_two(node: ir.Node, total: ir.Node) -> Found | None:
    left, right = (square_of(value) for value in total.inputs)
    shape = dims(node.outputs[0])
    if left is None or right is None or shape is None or not dims(left) == dims(right) == shape:
        return None
    rank, pair = len(shape), (*shape, 2)

    def build(builder: Builder) -> ir.Value:
        last = np.array([rank], np.int64)
        sides = [builder.op("Unsqueeze", [value, last], (*shape, 1)) for value in (left, right)]
        both = builder.op("Concat", sides, pair, {"axis": rank})
        return builder.reduce("ReduceL2", both, [rank], False, shape)

    return Found((total, node), build)


def log_of_square(node: ir.Node) -> Found | None:
    """The logarithm of a square, with something small added or not, without the square:

        log(x**2 + e) = 2 log |(x, sqrt e)|

    A square spans twice the orders of magnitude, which a logarithm shows and no integers of one scale hold.
    """
    if node.op_type != "Log":
        return None
    data, addend, found = _square_and_addend(node.inputs[0])
    shape = dims(node.outputs[0])
    if data is None or shape is None or dims(data) != shape:
        return None
    value, two = data, np.array(2, np.float32)

    def build(builder: Builder) -> ir.Value:
        size = _with_floor(builder, value, shape, addend) if addend else builder.op("Abs", [value], shape)
        return builder.op("Mul", [builder.op("Log", [size], shape), two], shape)

    return Found((*found, node), build)


def _square_and_addend(value: ir.Value | None) -> tuple[ir.Value | None, float, tuple[ir.Node, ...]]:
    """What is squared, what is added to the square, and the nodes that do both."""
    add = maker(value, "Add")
    if add is None:
        square = maker(value, "Mul", "Pow")
        return square_of(value), 0.0, (square,) if square is not None else ()
    for inner, constant in operands(add):
        addend, square = scalar(constant), maker(inner, "Mul", "Pow")
        if addend is not None and 0 < addend < 1 and square is not None:
            return square_of(inner), addend, (square, add)
    return None, 0.0, ()


def _with_floor(builder: Builder, value: ir.Value, shape: tuple[int, ...], addend: float) -> ir.Value:
    """The length of every element beside the root of the addend."""
    last = len(shape)
    side = builder.op("Unsqueeze", [value, np.array([last], np.int64)], (*shape, 1))
    floor = np.full((*shape, 1), np.sqrt(addend), np.float32)
    both = builder.op("Concat", [side, floor], (*shape, 2), {"axis": last})
    return builder.reduce("ReduceL2", both, [last], False, shape)
