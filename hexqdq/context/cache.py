"""The cache of compiled contexts: keyed by content, safe under concurrent processes and after a kill."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from hexqdq.context.container import FORMAT_VERSION, canonical_json
from hexqdq.context.file import package_versions
from hexqdq.errors import ContextError

VARIABLE = "HEXQDQ_CACHE"

_LOCATION = re.compile(rb"\x0a\x08location\x12([\x01-\x7f])")
"""An external data entry in an ONNX file: key ``location`` and the length of its value."""


def cache_folder(chosen: Path | None = None) -> Path:
    """The folder chosen, that of ``HEXQDQ_CACHE``, or the user's cache folder."""
    if chosen is not None:
        return chosen
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE])
    import platformdirs

    return Path(platformdirs.user_cache_dir("hexqdq", appauthor=False))


def model_key(model: Path | bytes, target: str) -> str:
    """What a compiled context depends on, as one digest: the model's content, the target, every version."""
    facts = [_contents(model), target, FORMAT_VERSION, package_versions(), _code_digest()]
    return hashlib.sha256(canonical_json(facts)).hexdigest()


def _contents(model: Path | bytes) -> list[str]:
    if isinstance(model, bytes):
        return [hashlib.sha256(model).hexdigest()]
    return [_digest(path) for path in (model, *external_files(model))]


def external_files(model: Path) -> list[Path]:
    """The files beside the model that it names as external data and that exist."""
    data = model.read_bytes()
    names = {data[match.end() : match.end() + match.group(1)[0]] for match in _LOCATION.finditer(data)}
    found = (model.parent / os.fsdecode(name) for name in sorted(names) if b"\0" not in name)
    return [path for path in found if path.is_file()]


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _code_digest() -> str:
    """The package's own sources: a changed compiler never meets what an earlier one cached."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*")):
        if path.suffix in (".py", ".c", ".s", ".ll", ".mlir"):
            digest.update(f"{path.relative_to(package)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


class CacheEntry:
    """One context in the cache; ``fill`` makes it where it is not there yet."""

    def __init__(self, folder: Path, key: str) -> None:
        self._contexts = folder / "contexts"
        self.path = self._contexts / f"{key}.ctx"

    def fill(self, make: Callable[[Path], None]) -> Path:
        """The context's path, after ``make`` has written it to the path it is given, if it was missing.

        Of several processes that ask at once one makes it and the others wait.
        """
        if self.path.is_file():
            return self.path
        import filelock

        try:
            self._contexts.mkdir(parents=True, exist_ok=True)
            with filelock.FileLock(self.path.with_suffix(".lock")):
                if not self.path.is_file():
                    self._make(make)
        except OSError as error:
            problem = f"cannot be used as cache: {error.strerror or error}"
            hint = f"set {VARIABLE}, or the option cache_dir, to a folder that is writable"
            raise ContextError(str(self._contexts), problem, hint) from error
        return self.path

    def _make(self, make: Callable[[Path], None]) -> None:
        for abandoned in self._temporaries():
            abandoned.unlink(missing_ok=True)
        temporary = self.path.with_name(f".{self.path.stem}.{os.getpid()}.ctx")
        try:
            make(temporary)
            temporary.replace(self.path)
        finally:
            temporary.unlink(missing_ok=True)

    def _temporaries(self) -> Iterator[Path]:
        """What killed processes left, makers' own half-written files included; only the lock's holder writes such."""
        for prefix in (".", ".."):
            yield from self._contexts.glob(f"{prefix}{self.path.stem}.*")

    def discard(self) -> None:
        """Forgets the context, as when it is found damaged."""
        self.path.unlink(missing_ok=True)
