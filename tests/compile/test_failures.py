"""What the compiler says, and leaves, when it fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from hexqdq.compile.dump import Dump
from hexqdq.compile.objects.link import run_zig, with_elf_flags
from hexqdq.compile.objects.llvm import llvm_ir, object_code
from hexqdq.compile.pipeline import compile_segment
from hexqdq.compile.product import TosaSegment
from hexqdq.compile.verify import verify_object
from hexqdq.errors import CompileError
from hexqdq.ops.unit import Tensor
from hexqdq.qtypes import QType
from hexqdq.target import find_target
from tests.compile.segments import Conv, conv_segment

HOST = find_target("host-x86_64")


def test_text_that_is_no_tosa_leaves_a_reproducer() -> None:
    tensor = Tensor("x", (1,), QType.U8)
    segment = TosaSegment("broken", "func.func @broken() { nonsense }", (tensor,), (tensor,))
    with pytest.raises(CompileError, match="does not lower to linalg") as caught:
        compile_segment(segment, None, HOST, ())
    folder = Path(caught.value.hint.rsplit(" ", 1)[-1])
    assert [path.name for path in folder.iterdir()] == ["00.tosa.mlir"]


def test_arguments_must_match_the_segment() -> None:
    segment = conv_segment(Conv())
    fewer = TosaSegment(segment.name, segment.text, segment.inputs, segment.outputs, segment.constants[:1])
    with pytest.raises(CompileError, match="has 3 arguments; expected 2"):
        compile_segment(fewer, None, HOST, ())


def test_kernels_that_do_not_parse_are_named() -> None:
    with pytest.raises(CompileError, match="kernels of segment s"):
        llvm_ir("s", "module { func.func @f() { nonsense } }")


def test_a_cast_that_is_left_is_refused_before_translation() -> None:
    text = """module { func.func @f(%a: memref<4xi8>) -> !llvm.ptr {
      %p = builtin.unrealized_conversion_cast %a : memref<4xi8> to !llvm.ptr
      return %p : !llvm.ptr } }"""
    with pytest.raises(CompileError, match="left an unrealized_conversion_cast"):
        llvm_ir("s", text)


def test_ir_that_llvm_refuses_is_an_error() -> None:
    with pytest.raises(CompileError, match="LLVM fails for host-x86_64"):
        object_code("s", "define nonsense", HOST, want_assembly=False)


def test_a_failing_tool_is_quoted() -> None:
    with pytest.raises(CompileError, match="the linker: failed"):
        run_zig("the linker", ["ld.lld", "-m", "elf_x86_64", "no-such-file.o"])


def test_elf_flags_are_the_four_bytes_at_36() -> None:
    assert with_elf_flags(bytes(64), 0x73)[36:40] == b"\x73\0\0\0"


def test_an_object_of_another_machine_is_refused() -> None:
    with pytest.raises(CompileError, match="machine None"):
        verify_object("s", b"not an ELF file at all", HOST)


def test_a_dump_is_numbered(tmp_path: Path) -> None:
    compile_segment(conv_segment(Conv(size=(3, 3))), None, HOST, (), tmp_path / "dump")
    names = sorted(path.name for path in (tmp_path / "dump").iterdir())
    assert names[:3] == ["00.tosa.mlir", "00.tosa.npz", "01.linalg.mlir"]
    assert {name.split(".", 1)[1] for name in names} >= {"x86_64.kernels.mlir", "x86_64.ll", "x86_64.s", "x86_64.so"}


def test_a_dump_without_a_folder_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Dump("s", None).write("a.txt", "text")
    assert not list(tmp_path.iterdir())
