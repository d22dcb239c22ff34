"""Shared objects built by the system's C compiler, to test loading without hexqdq's own."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

# Adds a constant to the input's bytes by way of the arena; fails where a pointer is not aligned.
C_SOURCE = """
#include <stdint.h>
int32_t hexqdq_segment(const uint8_t *const *inputs, uint8_t *const *outputs, const uint8_t *constants, uint8_t *arena)
{
    if ((uintptr_t)constants % 128 || (uintptr_t)arena % 128) return 2;
    for (int i = 0; i < 32; i++) arena[i] = inputs[0][i];
    for (int i = 0; i < 32; i++) outputs[0][i] = arena[i] + constants[i] + OFFSET;
    return STATUS;
}
"""


@cache
def build_object(offset: int = 0, status: int = 0, source: str = C_SOURCE) -> bytes:
    """An object that adds ``offset`` too and returns ``status``; skips where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler: install cc to test the loading of objects")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.c").write_text(source)
        defines = [f"-DOFFSET={offset}", f"-DSTATUS={status}"]
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", *defines, "-o", "a.so", "a.c"], cwd=folder, check=True)
        return (Path(folder) / "a.so").read_bytes()
