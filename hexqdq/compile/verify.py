"""What must hold after every stage of compile; each check raises CompileError with what was found."""

from __future__ import annotations

import struct
from collections.abc import Callable

from hexqdq.compile.linalg.nest import Function, Place
from hexqdq.compile.product import ALIGNMENT, Area, Operand, Step, StepList, TosaSegment
from hexqdq.compile.schedule.entry import ENTRY
from hexqdq.errors import CompileError
from hexqdq.target import Target

ELF_MACHINE = {"hexagon": 164, "x86_64": 62, "aarch64": 183}


def verify_tosa(segment: TosaSegment) -> None:
    """The text has one function, named after the segment, with an argument per input and constant."""
    if segment.text.count("func.func") != 1:
        raise CompileError(f"segment {segment.name}", f"{segment.text.count('func.func')} functions; expected one")
    if not segment.outputs:
        raise CompileError(f"segment {segment.name}", "no outputs; expected at least one")


def verify_function(function: Function) -> None:
    """Every buffer is written once, before it is read; constants have values."""
    written = {name for name, buffer in function.buffers.items() if buffer.place in (Place.INPUT, Place.CONSTANT)}
    for node in function.nodes:
        for name in node.reads():
            if name not in written:
                raise CompileError(f"node {node.label}", f"reads {name} before it is written")
            buffer = function.buffers[name]
            if buffer.place is Place.CONSTANT and len(function.values.get(name, b"")) != buffer.nbytes:
                raise CompileError(f"node {node.label}", f"reads constant {name}, which has no values of its size")
        if node.output in written:
            raise CompileError(f"node {node.label}", f"writes {node.output}, which another node wrote")
        written.add(node.output)
    missing = [name for name in function.outputs if name not in written]
    if missing:
        raise CompileError(f"segment {function.name}", f"results {', '.join(missing)} are never written")


def operands_inside(steps: StepList) -> str | None:
    """Operands lie inside their areas."""
    sizes = {
        (Area.ARENA, 0): steps.arena_bytes,
        (Area.CONSTANT, 0): steps.constants_bytes,
        **{(Area.INPUT, i): tensor.nbytes for i, tensor in enumerate(steps.inputs)},
        **{(Area.OUTPUT, i): tensor.nbytes for i, tensor in enumerate(steps.outputs)},
    }
    for step in steps.steps:
        for operand in step.operands:
            size = sizes.get((operand.area, operand.index), -1)
            if operand.offset < 0 or operand.end > size:
                return f"{step.label}: bytes {operand.offset}..{operand.end} of {operand.area.value}, which has {size}"
    return None


def operands_aligned(steps: StepList) -> str | None:
    """Arena and constant operands start on a vector."""
    for step in steps.steps:
        for operand in step.operands:
            if operand.area in (Area.ARENA, Area.CONSTANT) and operand.offset % ALIGNMENT:
                return f"{step.label}: {operand.area.value} offset {operand.offset}; expected a multiple of {ALIGNMENT}"
    return None


def dependencies_backwards(steps: StepList) -> str | None:
    """Steps wait for earlier steps only."""
    for index, step in enumerate(steps.steps):
        if any(not 0 <= other < index for other in step.after):
            return f"{step.label}: step {index} waits for {step.after}"
    return None


def reads_are_written(steps: StepList) -> str | None:
    """Arena bytes that a step reads were last written by one step, in whole."""
    last: list[tuple[int, int, int]] = []
    for index, step in enumerate(steps.steps):
        for operand in step.operands:
            if operand.area is Area.ARENA and operand.reads and not operand.writes:
                writers = {writer for start, end, writer in last if start < operand.end and operand.offset < end}
                if len(writers) != 1:
                    return f"{step.label}: step {index} reads bytes that {len(writers)} steps wrote"
        last = overwritten(last, step, index)
    return None


def overwritten(last: list[tuple[int, int, int]], step: Step, index: int) -> list[tuple[int, int, int]]:
    """(start, end, writer) ranges of the arena after a step."""
    for operand in step.operands:
        if operand.area is Area.ARENA and operand.writes:
            last = [piece for entry in last for piece in outside(entry, operand)]
            last.append((operand.offset, operand.end, index))
    return last


def outside(entry: tuple[int, int, int], operand: Operand) -> list[tuple[int, int, int]]:
    """What a write leaves of a range."""
    start, end, writer = entry
    pieces = [(start, min(end, operand.offset), writer), (max(start, operand.end), end, writer)]
    return [piece for piece in pieces if piece[0] < piece[1]]


def step_operands_apart(steps: StepList) -> str | None:
    """What a step writes overlaps nothing else that it touches."""
    for step in steps.steps:
        for i, one in enumerate(step.operands):
            for other in step.operands[i + 1 :]:
                same = one.area is other.area and one.index == other.index
                if same and one.offset < other.end and other.offset < one.end and (one.writes or other.writes):
                    return f"{step.label}: operands at {one.offset} and {other.offset} of {one.area.value} overlap"
    return None


STEP_CHECKS: tuple[Callable[[StepList], str | None], ...] = (
    operands_inside,
    operands_aligned,
    dependencies_backwards,
    reads_are_written,
    step_operands_apart,
)


def verify_schedule(steps: StepList, constant_bytes: int) -> None:
    """All of STEP_CHECKS, and the constant section has the size that the list says."""
    for check in STEP_CHECKS:
        found = check(steps)
        if found is not None:
            raise CompileError("step list", f"{check.__doc__} Found {found}".replace("\n", " "))
    if steps.constants_bytes != constant_bytes:
        raise CompileError("step list", f"{steps.constants_bytes} bytes of constants; expected {constant_bytes}")


def verify_object(name: str, linked: bytes, target: Target) -> None:
    """The linked file is an ELF of the target's machine that exports the entry."""
    machine = struct.unpack_from("<H", linked, 18)[0] if linked[:4] == b"\x7fELF" else None
    if machine != ELF_MACHINE[target.arch]:
        raise CompileError(f"segment {name}", f"linked file of machine {machine}; expected {ELF_MACHINE[target.arch]}")
    if ENTRY.encode() not in linked:
        raise CompileError(f"segment {name}", f"the linked file does not export {ENTRY}")
