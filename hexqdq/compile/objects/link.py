"""Object code to self-contained shared objects."""

from __future__ import annotations

import hashlib
import os
import struct
import subprocess
import sys
import tempfile
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from platformdirs import user_cache_dir

from hexqdq.errors import CompileError
from hexqdq.target import Target

ELF_FLAGS_OFFSET = 36
EMULATION = {"hexagon": "hexagonelf", "x86_64": "elf_x86_64", "aarch64": "aarch64linux"}
RUNTIME_TRIPLE = "hexagon-linux-musl"
RUNTIME_FLAGS = (
    "-mcpu=hexagonv67+hvx_length128b+hvxv67",
    "-O2",
    "-g0",
    "-ffreestanding",
    "-fno-builtin",
    "-fPIC",
    "-fno-sanitize=all",
    "-fno-stack-protector",
)


def shared_object(code: bytes, target: Target) -> bytes:
    """The linked object; Hexagon's also holds the run time and starts as a server under qemu."""
    with tempfile.TemporaryDirectory(prefix="hexqdq-") as name:
        folder = Path(name)
        objects = [folder / "segment.o"]
        objects[0].write_bytes(code)
        flags = ["-m", EMULATION[target.arch], "-shared", "-Bsymbolic", "--gc-sections", "-s"]
        if target.is_hexagon:
            objects.append(folder / "runtime.o")
            objects[1].write_bytes(hexagon_runtime())
            flags += ["-e", "_start", "-z", "defs", "-u", "hexqdq_segment"]
        output = folder / "segment.so"
        run_zig("the linker", ["ld.lld", *flags, "-o", str(output), *map(str, objects)])
        linked = output.read_bytes()
    return with_elf_flags(linked, target.elf_flags) if target.is_hexagon else linked


def with_elf_flags(linked: bytes, flags: int) -> bytes:
    """The ELF file marked for another processor version."""
    end = ELF_FLAGS_OFFSET + 4
    return linked[:ELF_FLAGS_OFFSET] + struct.pack("<I", flags) + linked[end:]


def run_zig(what: str, arguments: list[str]) -> None:
    """Runs a tool of the ziglang package; raises CompileError with its first complaints."""
    done = subprocess.run([sys.executable, "-m", "ziglang", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CompileError(
            what, f"failed: {done.stderr.strip()[:2000]}", f"run: python -m ziglang {' '.join(arguments)}"
        )


def hexagon_runtime() -> bytes:
    """The run time's object code, compiled once for a version of source and compiler."""
    source = files("hexqdq.compile.objects").joinpath("hexagon.c").read_bytes()
    identity = b"\n".join([source, version("ziglang").encode(), *(flag.encode() for flag in RUNTIME_FLAGS)])
    cached = cache_folder() / f"hexagon-{hashlib.sha256(identity).hexdigest()[:32]}.o"
    if cached.exists():
        return cached.read_bytes()
    cached.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cached.parent) as name:
        text, output = Path(name, "hexagon.c"), Path(name, "hexagon.o")
        text.write_bytes(source)
        run_zig("the run time", ["cc", "-target", RUNTIME_TRIPLE, *RUNTIME_FLAGS, "-c", str(text), "-o", str(output)])
        output.replace(cached)
    return cached.read_bytes()


def cache_folder() -> Path:
    """Where compiled run-time objects are kept."""
    root = os.environ.get("HEXQDQ_CACHE")
    return (Path(root) if root else Path(user_cache_dir("hexqdq"))) / "objects"
