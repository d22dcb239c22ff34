"""TOSA text to linalg text: upstream's passes, rescaling kept as ``tosa.apply_scale``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mlir.ir import Context, Location, MLIRError, Module
from mlir.passmanager import PassManager

from hexqdq.errors import CompileError

PASSES = (
    "func.func(tosa-optional-decompositions)",
    "func.func(tosa-to-linalg-named)",
    "func.func(tosa-to-linalg)",
    "func.func(tosa-to-arith{include-apply-rescale=false})",
    "func.func(tosa-to-tensor)",
    "canonicalize",
    "cse",
    "linalg-fuse-elementwise-ops",  # bias, rescale, clamp and residual additions become one body
    "lower-affine",  # a gather in a fused body computes its index
    "canonicalize",
    "cse",
)


@contextmanager
def lowered(name: str, text: str) -> Iterator[Module]:
    """The linalg module of a TOSA module, valid inside the ``with``; raises CompileError naming the first fault."""
    with Context(), Location.unknown():
        try:
            module = Module.parse(text)
            PassManager.parse(f"builtin.module({','.join(PASSES)})").run(module.operation)
        except MLIRError as error:
            fault = str(error).strip()
            raise CompileError(f"segment {name}", f"the TOSA text does not lower to linalg: {fault}") from error
        yield module
