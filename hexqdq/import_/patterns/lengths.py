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
