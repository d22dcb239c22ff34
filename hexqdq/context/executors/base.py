"""What every executor is: it loads a segment once and runs it many times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hexqdq.errors import InputError
from hexqdq.ops.unit import Tensor, UnitGraph

Array = NDArray[Any]


class Segment(Protocol):
    """What an executor needs of a segment, compiled just now or read from a context."""

    @property
    def name(self) -> str: ...

    @property
    def inputs(self) -> tuple[Tensor, ...]: ...

    @property
    def outputs(self) -> tuple[Tensor, ...]: ...

    @property
    def arena_bytes(self) -> int: ...

    @property
    def graph(self) -> UnitGraph | None: ...

    @property
    def objects(self) -> Mapping[str, bytes | memoryview]: ...

    @property
    def constants(self) -> bytes | memoryview: ...


@dataclass(frozen=True)
class Counters:
    """What one run of a segment executed on the Hexagon: packets, instructions, HVX instructions."""

    packets: int
    instructions: int
    hvx_instructions: int


class LoadedSegment(Protocol):
    """A segment ready to run; ``run`` may be called from many threads."""

    @property
    def last_counters(self) -> Counters | None:
        """The counters of the latest run, None where the executor counts nothing."""

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs in order, from the inputs in order; raises InputError for a wrong shape or type."""

    def close(self) -> None:
        """Frees what the segment holds; it cannot run afterwards."""


class Executor(Protocol):
    """A place to run segments."""

    @property
    def name(self) -> str: ...

    def load(self, segment: Segment) -> LoadedSegment:
        """Prepares the segment; raises ExecutorError where this machine cannot."""


def checked_inputs(segment: Segment, inputs: Sequence[Array]) -> list[Array]:
    """The inputs as dense arrays of exactly the segment's types and shapes."""
    if len(inputs) != len(segment.inputs):
        raise InputError(f"segment {segment.name!r}", f"got {len(inputs)} inputs; expected {len(segment.inputs)}")
    for array, tensor in zip(inputs, segment.inputs, strict=True):
        if array.shape != tensor.shape or array.dtype != tensor.dtype.numpy:
            expected = f"{tensor.dtype.label} {tensor.shape}"
            raise InputError(tensor.name, f"got {array.dtype} {array.shape}; expected {expected}")
    return [np.ascontiguousarray(array).reshape(array.shape) for array in inputs]


def aligned_bytes(nbytes: int, alignment: int) -> NDArray[np.uint8]:
    """Uninitialised bytes whose address is a multiple of ``alignment``."""
    block = np.empty(nbytes + alignment, np.uint8)
    start = -block.ctypes.data % alignment
    return block[start : start + nbytes]
