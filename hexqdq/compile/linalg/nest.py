"""Loop nests: what a linalg function becomes before kernels are written for it.

A node computes one buffer by one or more parts. A part is a ``Nest`` (loops with scalar bodies) or
a ``Contraction`` (8-bit products summed over taps). Bodies speak the signed integers of TOSA; how
bytes lie in memory is the buffer's ``form``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum

ELEMENT_BYTES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i48": 8, "i64": 8}
"""Bytes that an element of a linalg type takes in memory."""


class Form(Enum):
    """How a buffer holds signed values: as they are, or with the sign bit flipped (unsigned order)."""

    RAW = "raw"
    FLIPPED = "flipped"


class Place(Enum):
    """Where a buffer lives."""

    INPUT = "input"
    OUTPUT = "output"
    ARENA = "arena"
    CONSTANT = "constant"


@dataclass(frozen=True)
class Buffer:
    """A dense row-major tensor in memory."""

    name: str
    shape: tuple[int, ...]
    element: str
    form: Form = Form.RAW
    place: Place = Place.ARENA

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * ELEMENT_BYTES[self.element]


@dataclass(frozen=True)
class Access:
    """An element of a buffer: ``offset`` plus a stride per loop, in elements."""

    buffer: str
    strides: tuple[int, ...]
    offset: int = 0


@dataclass(frozen=True)
class Instruction:
    """One operation of a body on values numbered from its arguments on.

    ``name`` is an MLIR operation, or ``constant`` (``number`` is its value), ``index`` (``number``
    is a loop), ``extract`` (``number`` is a table of the stage, operands are its indices) or
    ``lookup`` (the table has 256 bytes, the operand is an i8 that counts from -128).
    ``attributes`` are the operation's properties in MLIR's syntax.
    """

    name: str
    operands: tuple[int, ...]
    type: str
    number: int = 0
    attributes: str = ""


@dataclass(frozen=True)
class Body:
    """A scalar program: arguments by type, instructions, and the value that it yields."""

    arguments: tuple[str, ...]
    instructions: tuple[Instruction, ...]
    result: int

    def type_of(self, value: int) -> str:
        if value < len(self.arguments):
            return self.arguments[value]
        return self.instructions[value - len(self.arguments)].type

    @property
    def copies(self) -> bool:
        """Whether the body yields its first argument as it is."""
        return not self.instructions and self.result == 0


@dataclass(frozen=True)
class Stage:
    """A body with the accesses that feed its last arguments; tables are buffers it indexes freely.

    Where a stage follows an accumulator, the accumulator is argument 0, before the accesses.
    """

    body: Body
    reads: tuple[Access, ...] = ()
    tables: tuple[Access, ...] = ()


@dataclass(frozen=True)
class Nest:
    """Loops over ``extents``; the first ``parallel`` are parallel, the rest reduce.

    Without a reduction ``finish`` computes the element. With one, ``start`` gives the
    accumulator's first value, ``reduce`` folds an element into it (argument 0) and ``finish``
    makes the result of it. ``start``, ``finish`` and ``write`` stride over the parallel loops.
    """

    extents: tuple[int, ...]
    parallel: int
    write: Access
    finish: Stage
    start: Stage | None = None
    reduce: Stage | None = None

    @property
    def stages(self) -> tuple[Stage, ...]:
        return tuple(stage for stage in (self.start, self.reduce, self.finish) if stage is not None)

    @property
    def result_extents(self) -> tuple[int, ...]:
        return self.extents[: self.parallel]

    @property
    def is_dense(self) -> bool:
        """Whether the result is written in order, without gaps."""
        return self.write.strides == dense_strides(self.result_extents) and self.write.offset == 0


@dataclass(frozen=True)
class Contraction:
    """``acc[pixel, o] = sum over taps of (a - zero_point) * (w[o, tap] - weight_zero_point)`` on 8-bit integers.

    ``extents`` are the pixel loops, ``taps`` the reduction loops with the input channels last
    (stride 1). ``activation`` strides over pixels, then taps; ``weights``, a constant, over the
    output channel, then taps. Of the last tap only ``depth`` iterations have weights, the others
    count as zero. ``bias`` is a constant with an element per channel. ``finish`` (argument 0 is
    the accumulator) and ``write`` stride over the pixel loops and then the output channel.
    """

    extents: tuple[int, ...]
    taps: tuple[int, ...]
    channels: int
    depth: int
    activation: Access
    weights: Access
    zero_point: int
    weight_zero_point: int
    bias: str | None
    write: Access
    finish: Stage

    @property
    def result_extents(self) -> tuple[int, ...]:
        return (*self.extents, self.channels)


Part = Nest | Contraction


@dataclass(frozen=True)
class Node:
    """One buffer and the parts that write it, in order; ``label`` names the operation for people."""

    label: str
    output: str
    parts: tuple[Part, ...]

    def reads(self) -> tuple[str, ...]:
        """The buffers read, each once, in order of first use."""
        names: dict[str, None] = {}
        for part in self.parts:
            names.update(dict.fromkeys(part_reads(part)))
        return tuple(names)


@dataclass(frozen=True)
class Function:
    """A segment as nodes in order of execution.

    ``outputs`` names the buffer of every result; ``values`` holds the constants that the text
    itself carried (tables, multipliers) by buffer name.
    """

    name: str
    buffers: dict[str, Buffer]
    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    values: dict[str, bytes] = field(default_factory=dict)


def dense_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major element strides of a shape."""
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def part_reads(part: Part) -> list[str]:
    """The buffers that a part reads, in order, with repeats."""
    names: list[str] = []
    if isinstance(part, Contraction):
        names += [part.activation.buffer, part.weights.buffer]
        if part.bias is not None:
            names.append(part.bias)
        stages: tuple[Stage, ...] = (part.finish,)
    else:
        stages = part.stages
    for stage in stages:
        names += [access.buffer for access in (*stage.reads, *stage.tables)]
    return names
