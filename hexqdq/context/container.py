"""The bytes of a context file: a prefix, a JSON header and page-aligned sections with digests.

docs/context-format.md specifies the layout. This module knows sections by name and nothing of what
is in them.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import stat
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hexqdq.context import schema
from hexqdq.errors import ContextError, QuantizationError, UsageError

MAGIC = b"\x89HXQCTX\n"
FORMAT_VERSION = 1
PAGE = 4096
_FIELDS = struct.Struct("<8sIIQ")
"""Magic, format version, header bytes, file bytes."""
PREFIX_BYTES = _FIELDS.size + hashlib.sha256().digest_size

REBUILD = "write the context again with `hexqdq compile`"
NOT_WRITTEN = "give a file that `hexqdq compile` wrote; it makes one of a QDQ model"

MALFORMED = (KeyError, TypeError, ValueError, AttributeError, RecursionError, QuantizationError, UsageError)
"""What parsers and self-validating types raise on data that is not theirs."""

Buffer = bytes | memoryview


@dataclass(frozen=True)
class Section:
    """A named run of bytes; ``offset`` counts from the file's first page after the header."""

    name: str
    offset: int
    nbytes: int
    sha256: str


def canonical_json(data: Any) -> bytes:
    """The one spelling of ``data``: sorted keys, no spaces, UTF-8."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def page_end(nbytes: int) -> int:
    """``nbytes`` rounded up to a page."""
    return -(-nbytes // PAGE) * PAGE


def chunks(header: Mapping[str, Any], sections: Sequence[tuple[str, Buffer]]) -> Iterator[Buffer]:
    """The file's bytes, piece by piece; equal content gives equal bytes."""
    table: list[dict[str, Any]] = []
    end = 0
    for name, data in sections:
        table.append({"name": name, "offset": end, "nbytes": len(data), "sha256": hashlib.sha256(data).hexdigest()})
        end += page_end(len(data))
    text = canonical_json({**header, "sections": table})
    data_offset = page_end(PREFIX_BYTES + len(text))
    fields = _FIELDS.pack(MAGIC, FORMAT_VERSION, len(text), data_offset + end)
    yield fields + hashlib.sha256(fields + text).digest() + text
    yield bytes(data_offset - PREFIX_BYTES - len(text))
    for _, data in sections:
        yield data
        yield bytes(page_end(len(data)) - len(data))


@dataclass(frozen=True, eq=False)
class Container:
    """An opened file: its header, already checked, and its sections, checked when first asked for."""

    source: str
    data: memoryview
    header: Mapping[str, Any]
    sections: Mapping[str, Section]
    header_end: int
    _checked: set[str] = field(default_factory=set)

    def section(self, name: str) -> memoryview:
        """The bytes of a section without a copy; raises ContextError where they are not those written."""
        section = self.sections.get(name)
        if section is None:
            raise ContextError(self.source, f"has no section {name!r}; it has {', '.join(self.sections)}", REBUILD)
        start = page_end(self.header_end) + section.offset
        view = self.data[start : start + section.nbytes]
        if name not in self._checked:
            found = hashlib.sha256(view).hexdigest()
            if found != section.sha256:
                raise ContextError(
                    self.source,
                    f"section {name!r} is damaged: found digest {found[:12]}, expected {section.sha256[:12]}",
                    REBUILD,
                )
            self._check_padding(name, start + section.nbytes)
            self._checked.add(name)
        return view

    def verify(self) -> None:
        """Checks every section now; raises ContextError for the first that is damaged."""
        self._check_padding("header", self.header_end)
        for name in self.sections:
            self.section(name)

    def _check_padding(self, name: str, end: int) -> None:
        if any(self.data[end : page_end(end)]):
            raise ContextError(self.source, f"the padding after {name!r} is damaged: expected zeros", REBUILD)


def open_container(source: Path | Buffer) -> Container:
    """Maps a file, or takes bytes, and checks prefix and header; raises ContextError saying what was found."""
    if isinstance(source, Path):
        return _parse(str(source), _map(source))
    return _parse("context bytes", _page_aligned(source))


def _map(path: Path) -> memoryview:
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            kind = "a directory" if stat.S_ISDIR(mode) else "not a regular file"
            raise ContextError(str(path), f"is {kind}; expected a context file", "give the path of a .ctx file")
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return memoryview(b"")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        problem = f"cannot be read: {error.strerror}; expected a context file"
        raise ContextError(str(path), problem, "check the path") from error


def _page_aligned(data: Buffer) -> memoryview:
    """A page-aligned copy, so that constants are as aligned as in a mapped file."""
    if not data:
        return memoryview(b"")
    pages = mmap.mmap(-1, len(data))
    pages[:] = bytes(data)
    return memoryview(pages).toreadonly()


def _parse(source: str, data: memoryview) -> Container:
    if bytes(data[: len(MAGIC)]) != MAGIC:
        found = bytes(data[: len(MAGIC)])
        raise ContextError(source, f"is not a context: begins with {found!r}, expected {MAGIC!r}", NOT_WRITTEN)
    if len(data) < PREFIX_BYTES:
        raise ContextError(source, f"is truncated: {len(data)} bytes, expected at least {PREFIX_BYTES}", REBUILD)
    _, version, header_bytes, file_bytes = _FIELDS.unpack(data[: _FIELDS.size])
    if version != FORMAT_VERSION:
        raise ContextError(source, f"has format version {version}, expected {FORMAT_VERSION}", REBUILD)
    if len(data) != file_bytes:
        problem = "is truncated" if len(data) < file_bytes else "has bytes after its end"
        raise ContextError(source, f"{problem}: {len(data)} bytes, expected {file_bytes}", REBUILD)
    text = data[PREFIX_BYTES : PREFIX_BYTES + header_bytes]
    expected = bytes(data[_FIELDS.size : PREFIX_BYTES])
    found = hashlib.sha256(bytes(data[: _FIELDS.size]) + text).digest()
    if found != expected:
        raise ContextError(
            source, f"the header is damaged: found digest {found.hex()[:12]}, expected {expected.hex()[:12]}", REBUILD
        )
    return _container(source, data, text)


def _container(source: str, data: memoryview, text: memoryview) -> Container:
    with well_formed(source, "header"):
        header = schema.check(json.loads(bytes(text)), schema.HEADER)
        sections = {entry["name"]: Section(**entry) for entry in header["sections"]}
        header_end = PREFIX_BYTES + len(text)
        for section in sections.values():
            start = page_end(header_end) + section.offset
            if section.offset % PAGE or start + section.nbytes > len(data):
                raise ValueError(f"section {section.name!r} lies outside the file")
    return Container(source, data, header, sections, header_end)


@contextmanager
def well_formed(source: str, place: str) -> Iterator[None]:
    """Turns what a parser raises on data of the wrong form into a ContextError that names the place."""
    try:
        yield
    except MALFORMED as error:
        problem = f"the {place} is not of format {FORMAT_VERSION}: {type(error).__name__} {error}"
        raise ContextError(source, problem, REBUILD) from error
