"""Writes one kernel: its arguments, accesses to buffers and the numbers it is called with."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np

from hexqdq.compile.kernels.body import Surroundings, splat
from hexqdq.compile.kernels.kernel import (
    NAME,
    BufferOperand,
    Kernel,
    KernelOperand,
    PackedOperand,
    ScratchOperand,
)
from hexqdq.compile.kernels.lookup import write_lookup
from hexqdq.compile.kernels.rescale import NARROW
from hexqdq.compile.kernels.style import Style
from hexqdq.compile.kernels.text import Text, vector
from hexqdq.compile.linalg.body import type_name
from hexqdq.compile.linalg.nest import ELEMENT_BYTES, Access, Buffer, Form, Node, Place, Stage

SIGN = {"i8": -128, "i16": -32768}
MEMORY_TYPE = {"i1": "i8", "i48": "i64"}
VECTOR_BYTES = 128


@dataclass(frozen=True)
class Lanes:
    """How one loop is cut into vectors: ``count`` of them, the last one moved back to end in time.

    ``size`` 0 is a scalar loop. ``extent`` is the loop's.
    """

    extent: int
    size: int

    @property
    def count(self) -> int:
        return -(-self.extent // self.size) if self.size else self.extent

    @property
    def step(self) -> int:
        return self.size or 1

    @property
    def overlaps(self) -> bool:
        return self.size > 0 and self.extent % self.size != 0 and self.extent > self.size


LONGEST_SHORT_VECTOR = 64


def short_lanes(extent: int) -> Lanes:
    """Rows that vectors may not reach past, in powers of two; LLVM fails at some other counts on Hexagon."""
    return Lanes(extent, 1 << (min(extent, LONGEST_SHORT_VECTOR).bit_length() - 1))


class KernelWriter:
    """One kernel being written for a node over ``buffers`` in a target's style."""

    def __init__(self, buffers: Mapping[str, Buffer], values: Mapping[str, bytes], style: Style) -> None:
        self.text = Text()
        self.buffers = buffers
        self.values = values
        self.style = style
        self.operands: list[KernelOperand] = []
        self.arguments: dict[str, str] = {}
        self.numbers: list[int] = []

    def bind(self, node: Node, packed: frozenset[str] = frozenset()) -> None:
        """Arguments for the node's buffers, those that are packed apart left out."""
        written = node.output
        for name in (*node.reads(), written):
            if name not in self.arguments and name not in packed:
                reads = name in node.reads()
                self.add(name, BufferOperand(name, reads, name == written))

    def add(self, key: str, operand: KernelOperand) -> str:
        """A new argument under a key; returns its name."""
        self.arguments[key] = f"%a{len(self.operands)}"
        self.operands.append(operand)
        return self.arguments[key]

    def packed(self, key: str, values: bytes) -> str:
        return self.add(key, PackedOperand(values))

    def scratch(self, nbytes: int) -> str:
        return self.add("scratch", ScratchOperand(nbytes))

    def number(self, number: int, element: str) -> str:
        """A number of the model as a load from the kernel's own constants."""
        if not -(2**31) <= number < 2**31 or element == "i1":
            return self.text.constant(number, element)
        slot = len(self.numbers)
        self.numbers.append(number)
        self.text.head.append(f"  %n{slot}p = llvm.getelementptr %numbers[{slot}] : (!llvm.ptr) -> !llvm.ptr, i32")
        self.text.head.append(f"  %n{slot} = llvm.load %n{slot}p {{alignment = 4 : i64}} : !llvm.ptr -> i32")
        if element == "i32":
            return f"%n{slot}"
        cast = "extsi" if element == "i64" else "trunci"
        return self.text.hoisted(f"arith.{cast} %n{slot} : i32 to {element}")

    def kernel(self, label: str) -> Kernel:
        """The finished kernel."""
        arguments = [f"%a{index}" for index in range(len(self.operands))]
        operands = tuple(self.operands)
        if self.numbers:
            arguments.append("%numbers")
            operands = (*operands, PackedOperand(np.array(self.numbers, "<i4").tobytes()))
        return Kernel(label, self.text.function(NAME, arguments), operands)

    @contextmanager
    def loops(self, extents: Sequence[int]) -> Iterator[list[str]]:
        """Nested loops; gives their indices."""
        with ExitStack() as stack:
            yield [stack.enter_context(self.text.loop(extent)).index for extent in extents]

    def chunk_start(self, lanes: Lanes, chunk: str) -> str:
        """The first element of a vector of a cut loop."""
        if lanes.count == 1 or lanes.step == 1:
            return chunk
        step = self.text.constant(lanes.step, "i32")
        start = self.text.op(f"arith.muli {chunk}, {step} overflow<nsw> : i32")
        if not lanes.overlaps:
            return start
        last = self.text.constant(lanes.extent - lanes.size, "i32")
        return self.text.op(f"arith.minsi {start}, {last} : i32")

    def alignment(self, access: Access, lanes: Lanes | None) -> int:
        """Bytes to which every address of an access is a multiple."""
        buffer = self.buffers[access.buffer]
        edge = buffer.place in (Place.INPUT, Place.OUTPUT)
        base = self.style.edge_alignment if edge else VECTOR_BYTES
        steps = [access.offset, *access.strides[: None if lanes is None else -1]]
        if lanes is not None and access.strides[-1]:
            steps.append(lanes.step if lanes.count > 1 else 0)
            steps.append(lanes.extent - lanes.size if lanes.overlaps else 0)
        return math.gcd(base, *(step * ELEMENT_BYTES[buffer.element] for step in steps))

    def pointer(self, access: Access, indices: Sequence[str]) -> str:
        size = ELEMENT_BYTES[self.buffers[access.buffer].element]
        terms = [(index, stride * size) for index, stride in zip(indices, access.strides, strict=True)]
        return self.text.pointer(self.arguments[access.buffer], terms, access.offset * size)

    def load(self, access: Access, indices: Sequence[str], lanes: Lanes | None, *, spread: int = -1) -> str:
        """The signed values of an access; one value for all lanes where the lane loop does not move it."""
        size = lanes.size if lanes else 0
        position = spread if spread >= 0 else len(access.strides) - 1
        moves = bool(size) and access.strides[position] != 0
        value = self.signed(
            self.pointer(access, indices),
            self.buffers[access.buffer],
            size if moves else 0,
            self.alignment(access, lanes if position == len(access.strides) - 1 else None),
        )
        if not size or moves:
            return value
        element = type_name(self.buffers[access.buffer].element)
        return self.text.op(f"vector.broadcast {value} : {element} to {vector(element, size)}")

    def signed(self, pointer: str, buffer: Buffer, lanes: int, alignment: int) -> str:
        """A load of the signed value that memory stands for."""
        element = type_name(buffer.element)
        memory = vector(MEMORY_TYPE.get(element, element), lanes)
        value = self.text.load(pointer, memory, alignment)
        if element == "i1":
            return self.text.op(f"arith.trunci {value} : {memory} to {vector('i1', lanes)}")
        return self.flipped(value, buffer, lanes)

    def flipped(self, value: str, buffer: Buffer, lanes: int) -> str:
        """Between signed values and the buffer's form, either way."""
        if buffer.form is Form.RAW:
            return value
        kind = vector(buffer.element, lanes)
        return self.text.op(f"arith.xori {value}, {self.text.constant(SIGN[buffer.element], kind)} : {kind}")

    def store(self, value: str, access: Access, indices: Sequence[str], lanes: Lanes | None) -> None:
        """Signed values into memory in the buffer's form."""
        buffer = self.buffers[access.buffer]
        size = lanes.size if lanes else 0
        element = type_name(buffer.element)
        kind = vector(element, size)
        if element == "i1":
            kind = vector("i8", size)
            value = self.text.op(f"arith.extui {value} : {vector('i1', size)} to {kind}")
        value = self.flipped(value, buffer, size)
        self.text.store(value, self.pointer(access, indices), kind, self.alignment(access, lanes))

    def surroundings(
        self, stage: Stage, leading: int, indices: Sequence[str], lanes: int, lane_loop: int
    ) -> Surroundings:
        """What the body of a stage sees at some indices; its reads come after ``leading`` arguments."""

        def extract(table: int, place: list[str], element: str) -> str:
            return self.load(stage.tables[table], place, None)

        def lookup(table: int, value: str) -> str:
            return write_lookup(self.text, self.arguments[stage.tables[table].buffer], value, lanes, self.style)

        narrow = frozenset(i for i, access in enumerate(stage.reads, leading) if self.is_narrow(access.buffer))
        return Surroundings(lanes, indices, lane_loop, self.number, extract, lookup, self.style.arch, narrow)

    def is_narrow(self, name: str) -> bool:
        """Whether a buffer holds constant words of 0..32767 only."""
        buffer = self.buffers[name]
        if buffer.place is not Place.CONSTANT or buffer.element != "i32" or name not in self.values:
            return False
        values = np.frombuffer(self.values[name], "<i4")
        return bool(values.size) and int(values.min()) >= 0 and int(values.max()) < NARROW

    def fills(self, buffer: str, extents: Sequence[int]) -> bool:
        """Whether loops over every element of a buffer; only then may vectors reach past a row's end."""
        return math.prod(extents) == math.prod(self.buffers[buffer].shape)

    def splat(self, scalar: str, element: str, lanes: int) -> str:
        return splat(self.text, scalar, element, lanes)
