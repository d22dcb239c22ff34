"""Numbered texts of a compilation: all of them for ``--dump``, the last ones when it fails."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hexqdq.errors import CompileError
from hexqdq.files import dumping, replace_file


class Dump:
    """The texts of one segment; written to ``folder`` as they come, or kept for a reproducer."""

    def __init__(self, name: str, folder: Path | None) -> None:
        self.name = name
        self.folder = folder
        self.kept: list[tuple[str, bytes]] = []
        self.count = 0
        self.lock = threading.Lock()

    def write(self, name: str, content: str | bytes | dict[str, Any]) -> None:
        """One numbered file; a dictionary becomes JSON."""
        if isinstance(content, dict):
            content = json.dumps(content, indent=1)
        data = content.encode() if isinstance(content, str) else content
        with self.lock:
            self.keep(f"{self.count:02}.{name}", data)
            self.count += 1

    def write_beside(self, name: str, data: bytes) -> None:
        """A file under the number of the one before it."""
        with self.lock:
            self.keep(f"{self.count - 1:02}.{name}", data)

    def keep(self, name: str, data: bytes) -> None:
        self.kept.append((name, data))
        if self.folder is not None:
            with dumping(self.folder):
                self.folder.mkdir(parents=True, exist_ok=True)
            replace_file(self.folder / name, [data])

    @contextmanager
    def kept_on_failure(self) -> Iterator[None]:
        """Names a folder with every text so far in a CompileError that passes."""
        try:
            yield
        except CompileError as error:
            folder = self.folder or self.reproducer()
            raise CompileError(error.subject, error.problem, f"see the compiler's texts in {folder}") from error

    def reproducer(self) -> Path:
        folder = Path(tempfile.mkdtemp(prefix=f"hexqdq-{self.name}-failed-"))
        for name, data in self.kept:
            (folder / name).write_bytes(data)
        return folder
