"""The segment's entry function, written from its step list."""

from __future__ import annotations

from collections.abc import Mapping

from hexqdq.compile.kernels.kernel import NAME
from hexqdq.compile.kernels.text import Text
from hexqdq.compile.product import Area, Operand, StepList

ENTRY = "hexqdq_segment"
AREAS = {Area.ARENA: "%arena", Area.CONSTANT: "%constants"}


def module_text(steps: StepList, kernels: Mapping[str, str]) -> str:
    """The MLIR module of every kernel and of the entry that calls them in order."""
    functions = [kernel_function(name, text) for name, text in kernels.items()]
    return "module {\n" + "\n".join([*functions, entry_text(steps)]) + "}\n"


def kernel_function(name: str, text: str) -> str:
    """A kernel under its name, kept apart from the entry so that it is compiled once."""
    attributes = 'attributes {llvm.linkage = #llvm.linkage<internal>, passthrough = ["noinline"]} {'
    head, rest = text.split("{\n", 1)
    return f"{head.replace(f'@{NAME}(', f'@{name}(')}{attributes}\n{rest}"


def entry_text(steps: StepList) -> str:
    """``int32 hexqdq_segment(inputs, outputs, constants, arena)``."""
    text = Text()
    for step in steps.steps:
        pointers = [operand_pointer(text, operand) for operand in step.operands]
        types = ", ".join(["!llvm.ptr"] * len(pointers))
        text.emit(f"func.call @{step.kernel}({', '.join(pointers)}) : ({types}) -> ()")
    zero = text.constant(0, "i32")
    body = "\n".join([*text.head, *text.lines])
    arguments = ", ".join(f"%{name}: !llvm.ptr" for name in ("inputs", "outputs", "constants", "arena"))
    return f"func.func @{ENTRY}({arguments}) -> i32 {{\n{body}\n  return {zero} : i32\n}}\n"


def operand_pointer(text: Text, operand: Operand) -> str:
    """The address of an operand."""
    if operand.area in AREAS:
        return text.pointer(AREAS[operand.area], [], operand.offset)
    array = "%inputs" if operand.area is Area.INPUT else "%outputs"
    place = text.hoisted(f"llvm.getelementptr {array}[{operand.index}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr")
    base = text.hoisted(f"llvm.load {place} {{alignment = 4 : i64}} : !llvm.ptr -> !llvm.ptr")
    return text.pointer(base, [], operand.offset)
