"""The context file: round trip, equal bytes, and every kind of damage told as a ContextError."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexqdq.context import container, file
from hexqdq.context.container import MAGIC, PAGE, PREFIX_BYTES
from hexqdq.context.product import HostCall, SegmentCall
from hexqdq.errors import ContextError
from tests.context.samples import abs_part, conv_graph, conv_model, conv_segment, npu_part

DATA = file.to_bytes(conv_model())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return file.write(conv_model(host_parts=(abs_part(),)), tmp_path / "model.ctx")


def test_everything_comes_back(path: Path) -> None:
    compiled = conv_model(host_parts=(abs_part(),))
    context = file.read(path)
    context.verify()
    assert (context.target, context.digest) == (compiled.target, compiled.digest)
    assert (context.inputs, context.outputs) == (compiled.inputs, compiled.outputs)
    assert (context.decisions, context.origin) == (compiled.decisions, compiled.origin)
    segment_call, host_call = context.calls
    assert isinstance(segment_call, SegmentCall) and isinstance(host_call, HostCall)
    assert (segment_call.inputs, segment_call.outputs) == (npu_part().inputs, npu_part().outputs)
    assert (host_call.inputs, host_call.outputs) == (("y",), ("z",))
    assert host_call.model == abs_part().model


def test_the_segment_comes_back(path: Path) -> None:
    written = conv_segment()
    (segment,) = file.read(path).segments
    assert segment.steps == written.steps
    assert (segment.inputs, segment.outputs) == (written.inputs, written.outputs)
    assert segment.arena_bytes == written.arena_bytes
    assert segment.tosa_text == written.tosa.text
    assert {key: bytes(data) for key, data in segment.objects.items()} == written.objects
    assert bytes(segment.constants) == written.constants
    assert segment.graph is not None
    assert segment.graph.to_json() == conv_graph().to_json()
    for name, values in conv_graph().constants().items():
        np.testing.assert_array_equal(segment.graph.constants()[name], values, strict=True)


def test_a_segment_that_began_at_tosa_has_no_graph() -> None:
    segment = dataclasses.replace(conv_segment(), graph=None)
    assert file.read(file.to_bytes(conv_model(segment))).segments[0].graph is None


def test_equal_content_gives_equal_bytes(path: Path, tmp_path: Path) -> None:
    again = file.write(conv_model(host_parts=(abs_part(),)), tmp_path / "again.ctx")
    assert again.read_bytes() == path.read_bytes()
    assert file.to_bytes(conv_model(host_parts=(abs_part(),))) == path.read_bytes()


def test_constants_are_page_aligned_in_place_and_read_only(path: Path) -> None:
    for source in (path, path.read_bytes()):
        (segment,) = file.read(source).segments
        constants = np.frombuffer(segment.constants, np.uint8)
        assert constants.ctypes.data % PAGE == 0
        assert not constants.flags.writeable
        assert np.shares_memory(constants, np.frombuffer(segment.constants, np.uint8))


def test_a_replaced_file_leaves_the_open_context_whole(path: Path) -> None:
    context = file.read(path)
    file.write(conv_model(), path)
    context.verify()
    assert len(context.calls) == 2 and len(file.read(path).calls) == 1


def flipped(position: int, bit: int = 0) -> bytes:
    data = bytearray(DATA)
    data[position] ^= 1 << bit
    return bytes(data)


def read_all(data: bytes) -> None:
    file.read(data).verify()


# The prefix and header byte by byte, of every page its ends and middle.
POSITIONS = sorted({*range(PREFIX_BYTES + 200), *(p + d for p in range(0, len(DATA), PAGE) for d in (0, 1, 99, 4095))})


def test_a_flipped_byte_is_told_wherever_it_is() -> None:
    read_all(DATA)
    for position in POSITIONS:
        with pytest.raises(ContextError, match=r"damaged|expected"):
            read_all(flipped(position))


@given(st.integers(0, len(DATA) - 1), st.integers(0, 7))
def test_any_flipped_bit_is_told(position: int, bit: int) -> None:
    with pytest.raises(ContextError):
        read_all(flipped(position, bit))


@given(st.integers(0, len(DATA) - 1))
def test_any_truncation_is_told(length: int) -> None:
    with pytest.raises(ContextError):
        read_all(DATA[:length])


def test_truncation_at_every_short_length_is_told(tmp_path: Path) -> None:
    for length in range(PREFIX_BYTES + 2):
        with pytest.raises(ContextError):
            read_all(DATA[:length])
    short = tmp_path / "short.ctx"
    short.write_bytes(DATA[:5000])
    with pytest.raises(ContextError, match=f"truncated: 5000 bytes, expected {len(DATA)}"):
        file.read(short)


@given(st.binary(max_size=5000), st.booleans())
def test_foreign_bytes_are_told(data: bytes, with_magic: bool) -> None:
    with pytest.raises(ContextError):
        read_all(MAGIC + data if with_magic else data)


def sealed(header: bytes, sections: bytes = b"") -> bytes:
    """A file whose digests are right around a header of any content."""
    start = container.page_end(PREFIX_BYTES + len(header))
    fields = container._FIELDS.pack(MAGIC, container.FORMAT_VERSION, len(header), start + len(sections))
    digest = hashlib.sha256(fields + header).digest()
    return (fields + digest + header).ljust(start, b"\0") + sections


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"sections":[]}',
        b'{"sections":[{"name":"graph","offset":0,"nbytes":1,"sha256":""}]}',
        b'{"sections":[{"name":"graph","offset":-4096,"nbytes":1,"sha256":""}]}',
        b'{"sections":{}}',
        b"[" * 100_000,
        b"\xff\xfe",
    ],
)
def test_a_sealed_header_of_the_wrong_form_is_told(header: bytes) -> None:
    with pytest.raises(ContextError):
        read_all(sealed(header))


def test_each_message_says_what_was_found_and_expected(tmp_path: Path) -> None:
    later = DATA[:8] + (99).to_bytes(4, "little") + DATA[12:]
    for source, words in (
        (b"\x08\x07onnx-model", r"not a context: begins with b'\\x08\\x07onnx-m', expected b'\\x89HXQCTX\\n'"),
        (later, r"format version 99, expected 1"),
        (DATA + b"more", rf"bytes after its end: {len(DATA) + 4} bytes, expected {len(DATA)}"),
        (tmp_path / "absent.ctx", r"No such file"),
        (tmp_path, r"is a directory; expected a context file"),
        (Path("/dev/null"), r"not a regular file"),
    ):
        with pytest.raises(ContextError, match=words) as caught:
            file.read(source)
        assert caught.value.hint


def test_a_damaged_section_is_told_when_it_is_used_and_by_name() -> None:
    section = file.read(DATA).container.sections["segment/segment0/constants"]
    start = container.page_end(file.read(DATA).container.header_end) + section.offset
    context = file.read(flipped(start + 17))
    _ = context.segments[0].steps
    with pytest.raises(ContextError, match=r"segment/segment0/constants.*damaged"):
        _ = context.segments[0].constants


def test_nothing_is_left_where_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "model.ctx"
    target.write_bytes(b"the old content")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ContextError, match="cannot be written: No space left"):
        file.write(conv_model(), target)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.ctx"]
    assert target.read_bytes() == b"the old content"


def test_a_path_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    for path in (tmp_path / "no" / "folder.ctx", tmp_path):
        with pytest.raises(ContextError, match="cannot be written"):
            file.write(conv_model(), path)
    assert list(tmp_path.parent.glob(f".{tmp_path.name}*")) == []


def test_names_that_would_clash_are_told() -> None:
    compiled = conv_model()
    twice = dataclasses.replace(compiled, segments=compiled.segments * 2)
    missing = dataclasses.replace(compiled, segments=())
    for broken, words in ((twice, "not unique"), (missing, "no compiled segment")):
        with pytest.raises(ContextError, match=words):
            file.to_bytes(broken)


def test_the_mode_is_that_of_an_ordinary_file(path: Path) -> None:
    plain = path.parent / "plain"
    plain.write_bytes(b"")
    assert path.stat().st_mode == plain.stat().st_mode
