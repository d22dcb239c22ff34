"""What may be loaded when: the command line starts light, and running a context needs no tool-chain."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("mlir", "llvmlite", "ziglang", "onnx", "onnx_ir", "onnxscript", "onnxruntime", "numpy", "rich", "torch")
TOOL_CHAIN = ("mlir", "llvmlite", "ziglang", "onnx", "onnx_ir", "onnxscript")


def _loaded_by(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*(m for m in sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(result.stdout.split())


@pytest.mark.parametrize("statement", ["import hexqdq", "import hexqdq.cli"])
def test_start_loads_nothing_heavy(statement: str) -> None:
    assert not _loaded_by(statement) & set(HEAVY)


def test_the_check_sees_a_heavy_import() -> None:
    assert "numpy" in _loaded_by("import hexqdq.qtypes") & set(HEAVY)


HELP = """
import runpy, sys
sys.argv = ["hexqdq", "--help"]
try:
    runpy.run_module("hexqdq", run_name="__main__")
except SystemExit:
    print("LOADED", *sys.modules)
"""


def test_help_loads_nothing_heavy() -> None:
    """Its time is measured by benchmarks/start_time.py."""
    result = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, check=True)
    loaded = set(result.stdout.rpartition("LOADED")[2].split())
    assert "hexqdq.cli" in loaded
    assert not loaded & (set(HEAVY) - {"rich"})


def test_contexts_load_without_the_tool_chain() -> None:
    blocked = f"for name in {TOOL_CHAIN!r}: sys.modules[name] = None"
    loaded = _loaded_by(
        f"{blocked}\nimport hexqdq.context.file, hexqdq.context.run, hexqdq.app.session\n"
        "import hexqdq.context.executors.host, hexqdq.context.executors.qemu, hexqdq.context.executors.reference\n"
        "sys.modules = {k: v for k, v in sys.modules.items() if v is not None}"
    )
    assert "hexqdq.app.session" in loaded
    assert "hexqdq.driver" not in loaded
    assert "onnxruntime" not in loaded


def test_every_public_name_resolves() -> None:
    code = "import hexqdq\nfor name in hexqdq.__all__: getattr(hexqdq, name)\nprint(hexqdq.__version__)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip()
