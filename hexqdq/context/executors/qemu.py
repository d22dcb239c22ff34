"""Runs a segment's Hexagon object under qemu's user mode, the very code that ships.

One process serves one segment for many requests. All integers are little-endian u32.
Start, host to guest: magic, input count, output count, arena bytes, constants bytes, the inputs'
sizes, the outputs' sizes, the constants; the guest answers with the magic. A request: the host
sends 1 and all inputs; the guest answers status, executed packets, instructions and HVX
instructions of the call, then all outputs. 0 or the end of its input ends the guest.
"""

from __future__ import annotations

import shutil
import struct
import threading
import weakref
from collections.abc import Sequence

import numpy as np

from hexqdq.context.executors.base import Array, Counters, LoadedSegment, Segment, checked_inputs
from hexqdq.context.executors.guest import NEXT, Guest
from hexqdq.context.executors.object_file import ObjectFile
from hexqdq.errors import ExecutorError

QEMU = "qemu-hexagon"
OBJECT_KEY = "hexagon"
MAGIC = 0x51445848
REQUEST = 1
TIMEOUT_SECONDS = 600.0


def _words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)


class QemuSegment:
    """A segment in its own qemu process; requests take turns."""

    def __init__(self, segment: Segment, command: Sequence[str], timeout_seconds: float) -> None:
        self._segment = segment
        self._subject = f"segment {segment.name!r} under {QEMU}"
        self._lock = threading.RLock()
        self.last_counters: Counters | None = None
        file = ObjectFile(segment.name, segment.objects[OBJECT_KEY])
        self._close_file = weakref.finalize(self, file.close)
        self._guest = Guest(self._subject, [*command, file.path], (file.descriptor,), timeout_seconds)
        self._greet()

    def _greet(self) -> None:
        sizes = [tensor.nbytes for tensor in (*self._segment.inputs, *self._segment.outputs)]
        counts = (len(self._segment.inputs), len(self._segment.outputs))
        constants = self._segment.constants
        header = _words(MAGIC, *counts, self._segment.arena_bytes, len(constants), *sizes)
        self._guest.send(header)
        self._guest.send(constants)
        (answer,) = struct.unpack("<I", self._guest.receive(4))
        if answer != MAGIC:
            self.close()
            problem = f"the guest answered {answer:#x}; expected {MAGIC:#x}"
            raise ExecutorError(self._subject, problem, "compile the context again")

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        arrays = checked_inputs(self._segment, inputs)
        with self._lock:
            return self._request(arrays)

    def _request(self, arrays: list[Array]) -> list[Array]:
        if not self._guest.alive:
            self.close()
            raise ExecutorError(self._subject, "the guest has ended", "load the context again")
        self._guest.send(_words(REQUEST))
        for array in arrays:
            self._guest.send(array.tobytes())
        status, packets, instructions, hvx = struct.unpack("<4I", self._guest.receive(16))
        outputs = [
            np.frombuffer(self._guest.receive(tensor.nbytes), tensor.dtype.numpy).reshape(tensor.shape)
            for tensor in self._segment.outputs
        ]
        if status != 0:
            raise ExecutorError(self._subject, f"the segment ended with status {status}; expected 0", NEXT)
        self.last_counters = Counters(packets, instructions, hvx)
        return outputs

    def close(self) -> None:
        with self._lock:
            self._guest.close()
            self._close_file()


class QemuExecutor:
    """Runs segments under ``qemu-hexagon``, each in one process.

    ``command`` is the start of the guest's command line; without it the installed qemu is used.
    """

    name = "qemu"

    def __init__(self, command: Sequence[str] = (), timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._command = tuple(command)
        self._timeout_seconds = timeout_seconds

    def load(self, segment: Segment) -> LoadedSegment:
        if OBJECT_KEY not in segment.objects:
            found = ", ".join(segment.objects) or "nothing"
            problem = f"has objects for {found}; expected one for {OBJECT_KEY}"
            raise ExecutorError(f"segment {segment.name!r}", problem, "compile it for a hexagon target")
        return QemuSegment(segment, self._command or (_find_qemu(), "-cpu", "v67"), self._timeout_seconds)


def _find_qemu() -> str:
    found = shutil.which(QEMU)
    if found is None:
        raise ExecutorError("executor qemu", f"{QEMU} is not on the PATH", "install the package qemu-user")
    return found
