"""What rules ask of the graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

CLOSE = 1e-5
"""Relative distance within which a number is the one that a formula asks for: float32 texts of it differ by less."""


def close(found: float, wanted: float) -> bool:
    return abs(found - wanted) <= CLOSE * abs(wanted)


def maker(value: ir.Value | None, *op_types: str) -> ir.Node | None:
    """The node that makes the value as its first output, where it is one of the types."""
    node = value.producer() if value is not None else None
    if node is None or node.domain != "" or node.op_type not in op_types or node.outputs[0] is not value:
        return None
    return node


def array(value: ir.Value | None) -> NDArray[Any] | None:
    """A constant's values, None of what is computed."""
    if value is None or not value.is_initializer() or value.const_value is None:
        return None
    return np.asarray(value.const_value.numpy())


def floats(value: ir.Value | None) -> NDArray[np.float32] | None:
    """A float32 constant's values."""
    values = array(value)
    return values if values is not None and values.dtype == np.float32 else None


def scalar(value: ir.Value | None) -> float | None:
    """A float32 constant of one element."""
    values = floats(value)
    return float(values.reshape(())) if values is not None and values.size == 1 else None


def dims(value: ir.Value | None) -> tuple[int, ...] | None:
    """A static shape, None where it is not known."""
    if value is None or value.shape is None or not value.shape.is_static():
        return None
    return tuple(int(size) for size in value.shape.numpy())


def operands(node: ir.Node) -> Iterator[tuple[ir.Value, ir.Value]]:
    """The two inputs of a commutative op in either order."""
    left, right = node.inputs[0], node.inputs[1]
    if left is not None and right is not None:
        yield left, right
        yield right, left


def axes(node: ir.Node) -> tuple[int, ...] | None:
    """The axes of a reduction as non-negative numbers, None where they are computed or take in nothing."""
    shape = dims(node.inputs[0])
    given = array(node.inputs[1]) if len(node.inputs) > 1 and node.inputs[1] is not None else None
    if shape is None or (len(node.inputs) > 1 and node.inputs[1] is not None and given is None):
        return None
    listed = node.attributes["axes"].as_ints() if "axes" in node.attributes else given
    if listed is None or not len(listed):
        return None if integer(node, "noop_with_empty_axes", 0) else tuple(range(len(shape)))
    return tuple(sorted({int(axis) % len(shape) for axis in listed}))


def integer(node: ir.Node, name: str, default: int) -> int:
    return node.attributes[name].as_int() if name in node.attributes else default


def number(node: ir.Node, name: str, default: float) -> float:
    return node.attributes[name].as_float() if name in node.attributes else default


def between(root: ir.Node, leaves: Collection[ir.Value]) -> tuple[ir.Node, ...]:
    """The nodes that compute the root's output from the leaves and from constants, the root last."""
    found: dict[ir.Node, None] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node in found:
            continue
        found[node] = None
        inputs = (value for value in node.inputs if value is not None and value not in leaves)
        waiting += [source for value in inputs if (source := value.producer()) is not None]
    return tuple(reversed(found))


def first(found: Iterable[Any]) -> Any:
    """The first that is something, else None."""
    return next((one for one in found if one is not None), None)


_VIEWS = ("Reshape", "Unsqueeze", "Squeeze", "Flatten", "Identity")


def unviewed(value: ir.Value | None) -> ir.Value | None:
    """The value behind nodes that show the same elements in the same order under another shape."""
    while value is not None and (node := value.producer()) is not None and node.domain == "":
        source = node.inputs[0]
        same = node.op_type in _VIEWS or (node.op_type == "Expand" and _count(source) == _count(value))
        if not same or _count(source) is None:
            break
        value = source
    return value


def _count(value: ir.Value | None) -> int | None:
    shape = dims(value)
    return None if shape is None else int(np.prod(shape, dtype=np.int64))
