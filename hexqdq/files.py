"""Writing files so that a reader finds the old one or the whole new one, and refusals that name the path."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hexqdq.errors import HexqdqError, UsageError

Buffer = bytes | memoryview

WRITABLE = "give a path in a folder that exists and is writable"


def replace_file(path: Path, pieces: Iterable[Buffer], refusal: type[HexqdqError] = UsageError) -> Path:
    """Puts the pieces at ``path`` whole or not at all; raises ``refusal`` where it cannot be written."""
    temporary: Path | None = None
    with writing(path, refusal):
        try:
            with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
                temporary = Path(file.name)
                file.writelines(pieces)
                file.flush()
                os.fchmod(file.fileno(), 0o666 & ~_umask())
                os.fsync(file.fileno())
            temporary.replace(path)
            temporary = None
        finally:
            if temporary is not None:
                temporary.unlink(missing_ok=True)
    return path


@contextmanager
def writing(path: Path, refusal: type[HexqdqError] = UsageError) -> Iterator[None]:
    """Turns the system's refusal to write into an error that names the path.

    Something at ``path`` that is no file, such as a folder or a device, is never replaced.
    """
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "a device or a pipe"
        raise refusal(str(path), f"cannot be written: is {kind}; expected the name of a file", "give a file name")
    try:
        yield
    except OSError as error:
        raise refusal(str(path), f"cannot be written: {error.strerror or error}", WRITABLE) from error


def require_place(path: Path | None, refusal: type[HexqdqError] = UsageError) -> None:
    """Raises ``refusal`` where nothing can be written at ``path``: asked before work whose result goes there."""
    if path is not None:
        with writing(path, refusal), tempfile.TemporaryFile(dir=path.parent):
            pass


def require_folder(folder: Path | None) -> None:
    """Makes the folder of ``--dump``; raises UsageError where it cannot be made or written to."""
    if folder is not None:
        with dumping(folder):
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass


@contextmanager
def dumping(folder: Path) -> Iterator[None]:
    """Turns the system's refusal to write into the folder of ``--dump`` into an error that names it."""
    try:
        yield
    except OSError as error:
        problem = f"cannot be written to: {error.strerror or error}"
        raise UsageError(f"--dump {folder}", problem, "give a folder that is writable and has room") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
