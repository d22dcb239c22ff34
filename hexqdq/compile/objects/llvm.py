"""MLIR text to LLVM IR to object code."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvm

from hexqdq.errors import CompileError
from hexqdq.target import Target

PASSES = (
    "convert-vector-to-scf",
    "convert-scf-to-cf",
    "convert-to-llvm",
    "reconcile-unrealized-casts",
    "canonicalize",
    "cse",
)
LEFTOVER = "unrealized_conversion_cast"
MLIR_LOCK = threading.Lock()


@dataclass(frozen=True)
class ObjectCode:
    """Object code of one module, and the texts on the way to it."""

    ir: str
    assembly: str
    code: bytes


def llvm_ir(name: str, text: str) -> str:
    """The module as LLVM IR; raises CompileError where upstream's lowering fails or leaves a cast."""
    from mlir.dialects.llvm import translate_module_to_llvmir
    from mlir.ir import Context, Location, MLIRError, Module
    from mlir.passmanager import PassManager

    with MLIR_LOCK, Context(), Location.unknown():
        try:
            module = Module.parse(text)
            PassManager.parse(f"builtin.module({','.join(PASSES)})").run(module.operation)
        except MLIRError as error:
            raise CompileError(f"kernels of segment {name}", f"do not lower to LLVM: {error}") from error
        # the translation ends the process where a cast is left
        if LEFTOVER in str(module):
            raise CompileError(f"kernels of segment {name}", f"lowering to LLVM left an {LEFTOVER}")
        return str(translate_module_to_llvmir(module.operation))


LLVM_OPTIONS = ("-hvc-va=0",)
"""Hexagon: unaligned vector stores are not regrouped; LLVM 22 reorders ones that overlap."""


@cache
def initialize() -> None:
    for option in LLVM_OPTIONS:
        llvm.set_option("hexqdq", option)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def machine_of(target: Target) -> llvm.TargetMachine:
    """LLVM's machine for a target row."""
    initialize()
    model = "default" if target.is_hexagon else "small"
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.llvm_features, opt=3, reloc="pic", codemodel=model
    )


def object_code(name: str, ir: str, target: Target, *, want_assembly: bool) -> ObjectCode:
    """LLVM IR optimised for a target, as an object file."""
    try:
        machine = machine_of(target)
        module = llvm.parse_assembly(ir, llvm.create_context())
        module.triple = target.triple
        module.data_layout = str(machine.target_data)
        module.verify()
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_unrolling = not target.is_hexagon  # kernels are unrolled as written; more only costs time there
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
        optimised = str(module) if want_assembly else ""
        code = bytes(machine.emit_object(module))
        # code generation changes the module: the text is emitted from a copy, so that asking for it changes no code
        copy = llvm.parse_assembly(optimised, llvm.create_context()) if want_assembly else None
        return ObjectCode(optimised, str(machine.emit_assembly(copy)) if copy else "", code)
    except RuntimeError as error:
        raise CompileError(f"kernels of segment {name}", f"LLVM fails for {target.name}: {error}") from error
