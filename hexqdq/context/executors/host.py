"""Runs a segment's shared object in this process."""

from __future__ import annotations

import ctypes
import os
import platform
import weakref
from collections import deque
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hexqdq.compile.product import ALIGNMENT
from hexqdq.context.executors.base import (
    Array,
    Counters,
    LoadedSegment,
    Segment,
    aligned_bytes,
    checked_inputs,
)
from hexqdq.context.executors.object_file import ObjectFile
from hexqdq.errors import ExecutorError
from hexqdq.target import Target, host_targets

ENTRY = "hexqdq_segment"


@cache
def cpu_flags() -> frozenset[str]:
    """The features that the system reports of this CPU; none where it reports nothing."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return frozenset()
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()


def best_object(segment: Segment) -> Target:
    """The last, fastest host row that this CPU can run and the segment has an object for."""
    for target in reversed(host_targets()):
        if target.object_key in segment.objects and target.cpu_flags <= cpu_flags():
            return target
    wanted = ", ".join(target.object_key for target in host_targets()) or "none known"
    raise ExecutorError(
        f"segment {segment.name!r}",
        f"has objects for {', '.join(segment.objects) or 'nothing'}; this {platform.machine()} runs {wanted}",
        "compile the context on this machine, or run it with executor reference",
    )


def aligned_constants(constants: bytes | memoryview) -> NDArray[np.uint8]:
    """The constants in place where they are aligned, as in a mapped context, else a copy that is."""
    if not len(constants):
        return aligned_bytes(ALIGNMENT, ALIGNMENT)
    view = np.frombuffer(constants, np.uint8)
    if view.ctypes.data % ALIGNMENT == 0:
        return view
    copy = aligned_bytes(len(view), ALIGNMENT)
    copy[:] = view
    return copy


class Library:
    """A loaded object's entry function; the last reference to it, one held by a call included, unloads it."""

    def __init__(self, segment: Segment, target: Target) -> None:
        self._subject = f"segment {segment.name!r}"
        file = ObjectFile(segment.name, segment.objects[target.object_key])
        try:
            library = ctypes.CDLL(file.path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
        except OSError as error:
            file.close()
            problem = f"its {target.object_key} object does not load: {error}"
            hint = "run it with executor reference, and report the message"
            raise ExecutorError(self._subject, problem, hint) from error
        weakref.finalize(self, _unload, library._handle, file)
        try:
            self._entry = getattr(library, ENTRY)
        except AttributeError as error:
            problem = f"its {target.object_key} object has no function {ENTRY}"
            raise ExecutorError(self._subject, problem, "compile the context again") from error
        self._entry.restype = ctypes.c_int32
        self._entry.argtypes = (ctypes.c_void_p,) * 4

    def call(self, inputs: Sequence[Array], outputs: Sequence[Array], constants: Array, arena: Array) -> None:
        status = self._entry(_pointers(inputs), _pointers(outputs), constants.ctypes.data, arena.ctypes.data)
        if status != 0:
            problem = f"ended with status {status}; expected 0"
            raise ExecutorError(self._subject, problem, "compile the context again")


def _unload(handle: int, file: ObjectFile) -> None:
    import _ctypes

    _ctypes.dlclose(handle)
    file.close()


class HostSegment:
    """A loaded shared object; a call takes an arena from the pool and gives it back."""

    last_counters: Counters | None = None

    def __init__(self, segment: Segment) -> None:
        self.target = best_object(segment)
        self._segment = segment
        self._constants = aligned_constants(segment.constants)
        self._arenas: deque[NDArray[np.uint8]] = deque()
        self._library: Library | None = Library(segment, self.target)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        library = self._library
        if library is None:
            raise ExecutorError(f"segment {self._segment.name!r}", "is closed", "load it again")
        arrays = checked_inputs(self._segment, inputs)
        outputs: list[Array] = [np.empty(t.shape, t.dtype.numpy) for t in self._segment.outputs]
        arena = self._take_arena()
        library.call(arrays, outputs, self._constants, arena)
        self._arenas.append(arena)
        return outputs

    def close(self) -> None:
        self._library = None

    def _take_arena(self) -> NDArray[np.uint8]:
        try:
            return self._arenas.pop()
        except IndexError:
            return aligned_bytes(max(self._segment.arena_bytes, ALIGNMENT), ALIGNMENT)


def _pointers(arrays: Sequence[Array]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))


class HostExecutor:
    """Runs segments on this machine's CPU, in this process."""

    name = "host"

    def load(self, segment: Segment) -> LoadedSegment:
        return HostSegment(segment)
