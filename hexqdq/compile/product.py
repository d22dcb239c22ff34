"""What compile hands on: per segment its TOSA, its step list, shared objects and packed constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from numpy.typing import NDArray

from hexqdq.ops.unit import Tensor, UnitGraph
from hexqdq.partition.product import Edge as Edge
from hexqdq.partition.product import HostPart as HostPart
from hexqdq.partition.product import NpuPart as NpuPart
from hexqdq.partition.product import Part as Part
from hexqdq.report import Decision

Array = NDArray[Any]

ALIGNMENT = 128
"""Bytes to which the arena, the constants and every offset in them are aligned: one HVX vector."""


@dataclass(frozen=True, eq=False)
class TosaSegment:
    """A segment as an integer TOSA 1.0 module with one function ``@<name>``.

    The function's arguments are ``inputs`` and then ``constants``, in order. An 8-bit unsigned
    tensor appears there as i8 of ``x ^ 0x80``; ``Tensor.dtype`` keeps the edge's own type.
    """

    name: str
    text: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    constants: tuple[tuple[str, Array], ...] = ()


class Area(Enum):
    """Where a step's operand lies."""

    INPUT = "input"
    OUTPUT = "output"
    ARENA = "arena"
    CONSTANT = "constant"


@dataclass(frozen=True)
class Operand:
    """Bytes that a step reads or writes.

    ``index`` is the position of an input or output of the segment and 0 for the other areas;
    ``offset`` counts bytes from the start of that input, output, arena or constant section.
    """

    area: Area
    nbytes: int
    offset: int = 0
    index: int = 0
    reads: bool = False
    writes: bool = False

    @property
    def end(self) -> int:
        return self.offset + self.nbytes

    def to_json(self) -> dict[str, Any]:
        return {
            "area": self.area.value,
            "nbytes": self.nbytes,
            "offset": self.offset,
            "index": self.index,
            "reads": self.reads,
            "writes": self.writes,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Operand:
        return cls(Area(data["area"]), data["nbytes"], data["offset"], data["index"], data["reads"], data["writes"])


@dataclass(frozen=True)
class Step:
    """One kernel call of a segment.

    ``after`` holds the indices of earlier steps that must have finished; ``start`` and ``end`` are
    packets in the cost model, 0 where it has not run; ``label`` names the unit or op for people.
    """

    kernel: str
    operands: tuple[Operand, ...]
    after: tuple[int, ...] = ()
    thread: int = 0
    start: int = 0
    end: int = 0
    label: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "kernel": self.kernel,
            "operands": [operand.to_json() for operand in self.operands],
            "after": list(self.after),
            "thread": self.thread,
            "start": self.start,
            "end": self.end,
            "label": self.label,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Step:
        return cls(
            data["kernel"],
            tuple(Operand.from_json(operand) for operand in data["operands"]),
            tuple(data["after"]),
            data["thread"],
            data["start"],
            data["end"],
            data["label"],
        )


@dataclass(frozen=True)
class StepList:
    """The static schedule of a segment and the sizes of the areas its steps address."""

    steps: tuple[Step, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    arena_bytes: int = 0
    constants_bytes: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            "steps": [step.to_json() for step in self.steps],
            "inputs": [tensor.to_json() for tensor in self.inputs],
            "outputs": [tensor.to_json() for tensor in self.outputs],
            "arena_bytes": self.arena_bytes,
            "constants_bytes": self.constants_bytes,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> StepList:
        return cls(
            tuple(Step.from_json(step) for step in data["steps"]),
            tuple(Tensor.from_json(tensor) for tensor in data["inputs"]),
            tuple(Tensor.from_json(tensor) for tensor in data["outputs"]),
            data["arena_bytes"],
            data["constants_bytes"],
        )


@dataclass(frozen=True, eq=False)
class CompiledSegment:
    """A segment ready to run.

    ``objects`` holds one shared object per key (``hexagon``, ``x86_64``, ``x86_64-avx2``, ...),
    each with the entry function ``hexqdq_segment``; ``graph`` is its numpy form, None where
    compiling began at TOSA text.
    """

    name: str
    graph: UnitGraph | None
    tosa: TosaSegment
    steps: StepList
    objects: Mapping[str, bytes]
    constants: bytes

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return self.steps.inputs

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return self.steps.outputs

    @property
    def arena_bytes(self) -> int:
        return self.steps.arena_bytes


@dataclass(frozen=True, eq=False)
class CompiledModel:
    """The whole model: its parts in order and the compiled form of every NPU part, by name.

    ``target`` is a row's name; ``digest``, ``decisions`` and ``origin`` are partition's.
    """

    target: str
    digest: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    parts: tuple[Part, ...]
    segments: tuple[CompiledSegment, ...]
    decisions: tuple[Decision, ...] = ()
    origin: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def segment(self, name: str) -> CompiledSegment:
        """The compiled form of the NPU part of that name; raises KeyError where there is none."""
        for segment in self.segments:
            if segment.name == name:
                return segment
        raise KeyError(name)
