"""A linalg function as nodes: the reader that every operation's form shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from mlir.ir import BlockArgument, DenseIntElementsAttr, OpView, RankedTensorType, Value
from numpy.typing import NDArray

from hexqdq.compile.linalg.affine import access
from hexqdq.compile.linalg.body import type_name
from hexqdq.compile.linalg.nest import (
    ELEMENT_BYTES,
    Access,
    Body,
    Buffer,
    Form,
    Instruction,
    Nest,
    Node,
    Part,
    Place,
    Stage,
    dense_strides,
)
from hexqdq.errors import CompileError


class Reader:
    """The buffers, constants and nodes read so far, and the tensor values that name them."""

    def __init__(self) -> None:
        self.buffers: dict[str, Buffer] = {}
        self.nodes: list[Node] = []
        self.values: dict[str, bytes] = {}
        self.names: dict[Value, str] = {}
        self.fills: dict[Value, tuple[str, int]] = {}

    def add(self, buffer: Buffer) -> str:
        self.buffers[buffer.name] = buffer
        return buffer.name

    def arena(self, value: Value) -> str:
        """A new buffer for the tensor ``value``; 8-bit values lie in unsigned order."""
        shape, element = tensor_type(value)
        form = Form.FLIPPED if element == "i8" else Form.RAW
        name = self.add(Buffer(f"t{len(self.buffers)}", shape, element, form))
        self.names[value] = name
        return name

    def constant(self, value: Value, op: OpView) -> None:
        """A dense constant of the text as a constant buffer."""
        shape, element = tensor_type(value)
        kind = np.dtype(f"i{ELEMENT_BYTES[element]}")
        attribute = DenseIntElementsAttr(op.attributes["value"])
        values: np.ndarray[Any, Any] = np.array([int(item) for item in attribute], np.int64).astype(kind)
        name = self.add(Buffer(f"k{len(self.buffers)}", shape, element, Form.RAW, Place.CONSTANT))
        self.values[name] = np.broadcast_to(values.reshape(-1), (int(np.prod(shape)),)).tobytes()
        self.names[value] = name

    def held(self, values: NDArray[Any], element: str) -> str:
        """Values made while reading as a constant buffer."""
        name = self.add(Buffer(f"k{len(self.buffers)}", values.shape, element, Form.RAW, Place.CONSTANT))
        self.values[name] = values.tobytes()
        return name

    def name(self, value: Value) -> str:
        """The buffer of a tensor value; a filled tensor is written when it is first read."""
        if value in self.names:
            return self.names[value]
        if value in self.fills:
            return self.fill_node(value)
        raise CompileError("linalg function", f"{value} is read before it is computed")

    def fill_node(self, value: Value) -> str:
        element, number = self.fills[value]
        shape, _ = tensor_type(value)
        name = self.arena(value)
        self.node("fill", name, fill(name, shape, element, number))
        return name

    def node(self, label: str, output: str, *parts: Part) -> None:
        self.nodes.append(Node(label, output, parts))

    def read(self, value: Value, affine_map: Any) -> Access:
        """The map's element of a tensor value."""
        return access(self.name(value), tensor_type(value)[0], affine_map)


def tensor_type(value: Value) -> tuple[tuple[int, ...], str]:
    """Shape and element type of a tensor value."""
    kind = RankedTensorType(value.type)
    return tuple(kind.shape), str(kind.element_type)


def is_tensor(value: Value) -> bool:
    return isinstance(value.type, RankedTensorType)


def scalar_constant(value: Value) -> int:
    """The value of a scalar that must be constant."""
    if isinstance(value, BlockArgument) or value.owner.name != "arith.constant":
        raise CompileError("linalg function", f"{value} is computed; expected a constant")
    return int(value.owner.attributes["value"].value)


def constant_body(element: str, number: int) -> Body:
    """A body that yields a number."""
    return Body((), (Instruction("constant", (), type_name(element), number),), 0)


def copy_body(element: str) -> Body:
    """A body that yields its argument."""
    return Body((type_name(element),), (), 0)


def fill(buffer: str, shape: tuple[int, ...], element: str, number: int) -> Nest:
    """Every element set to a number."""
    return Nest(shape, len(shape), Access(buffer, dense_strides(shape)), Stage(constant_body(element, number)))


def copy(extents: tuple[int, ...], element: str, source: Access, target: Access, wide: str | None = None) -> Nest:
    """Elements moved from one access to another, sign extended where that one is ``wide``."""
    body = copy_body(element)
    if wide not in (None, element):
        body = Body(body.arguments, (Instruction("arith.extsi", (0,), str(wide)),), 1)
    return Nest(extents, len(extents), target, Stage(body, (source,)))
