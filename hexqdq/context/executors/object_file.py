"""A shared object's bytes as a path that a loader can open, in memory where the system can."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hexqdq.errors import ExecutorError


class ObjectFile:
    """Holds an object open under ``path`` until ``close``.

    On Linux it is an anonymous memory file: nothing is left on disk, whatever happens. The file
    stays open as long as the object is loaded, because loaders recognise objects by path.
    """

    def __init__(self, name: str, data: bytes | memoryview) -> None:
        try:
            if hasattr(os, "memfd_create"):
                self.descriptor = os.memfd_create(name[:200], os.MFD_CLOEXEC)
                self.path = f"/proc/self/fd/{self.descriptor}"
                self._on_disk = False
            else:
                self.descriptor, self.path = tempfile.mkstemp(suffix=".so")
                self._on_disk = True
            _write_all(self.descriptor, memoryview(data))
        except OSError as error:
            problem = f"its object cannot be put where a loader finds it: {error.strerror}"
            raise ExecutorError(f"segment {name!r}", problem, "free memory or disk space") from error

    def close(self) -> None:
        os.close(self.descriptor)
        if self._on_disk:
            Path(self.path).unlink()


def _write_all(descriptor: int, data: memoryview) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
