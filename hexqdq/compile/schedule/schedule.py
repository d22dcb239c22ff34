"""Nodes as steps: which kernel each calls, where its operands lie, what it waits for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hexqdq.compile.kernels.kernel import BufferOperand, Kernel, KernelOperand, PackedOperand, ScratchOperand
from hexqdq.compile.kernels.style import SLACK_BYTES, Style
from hexqdq.compile.kernels.write import write_kernel
from hexqdq.compile.linalg.nest import Function, Place
from hexqdq.compile.product import Area, Operand, Step, StepList, TosaSegment
from hexqdq.compile.schedule.arena import Lifetime, planned
from hexqdq.compile.schedule.constants import ConstantSection
from hexqdq.errors import CompileError


@dataclass(frozen=True)
class Scheduled:
    """The step list, the constant section and, per style, the text of every kernel by name."""

    steps: StepList
    constants: bytes
    kernels: tuple[dict[str, str], ...]


def schedule(function: Function, segment: TosaSegment, styles: Sequence[Style]) -> Scheduled:
    """One schedule for all styles: they share steps, operands and the memory plan."""
    rows = [[write_kernel(node, function, style) for style in styles] for node in function.nodes]
    names = kernel_names(rows)
    calls = [one_call(row) for row in rows]
    slack = SLACK_BYTES if any(style.overrun for style in styles) else 0
    offsets, arena_bytes = planned(lifetimes(function, calls), slack)
    section = ConstantSection()
    steps: list[Step] = []
    for index, (name, call) in enumerate(zip(names, calls, strict=True)):
        operands = tuple(operand_of(item, index, function, offsets, section) for item in call.operands)
        steps.append(Step(name, operands, waits(steps, operands), label=call.label))
    constants = section.finished(SLACK_BYTES)
    step_list = StepList(tuple(steps), segment.inputs, segment.outputs, arena_bytes, len(constants))
    kernels = tuple(
        {name: row[column].text for name, row in zip(names, rows, strict=True)} for column in range(len(styles))
    )
    return Scheduled(step_list, constants, kernels)


def kernel_names(rows: Sequence[Sequence[Kernel]]) -> list[str]:
    """A name per node; nodes whose kernels have equal texts in every style share it."""
    known: dict[tuple[str, ...], str] = {}
    names = []
    for row in rows:
        key = tuple(kernel.text for kernel in row)
        if key not in known:
            known[key] = f"{re.sub('[^A-Za-z0-9]+', '_', row[0].label)}_{len(known)}"
        names.append(known[key])
    return names


def one_call(row: Sequence[Kernel]) -> Kernel:
    """The call that fits every style: operands agree but for scratch, which is the largest."""
    operands = tuple(common_operand(column) for column in zip(*(kernel.operands for kernel in row), strict=True))
    return replace(row[0], operands=operands)


def common_operand(column: tuple[KernelOperand, ...]) -> KernelOperand:
    if all(isinstance(item, ScratchOperand) for item in column):
        return ScratchOperand(max(item.nbytes for item in column if isinstance(item, ScratchOperand)))
    if any(item != column[0] for item in column):
        raise CompileError("schedule", "kernels of two targets take different operands")
    return column[0]


def lifetimes(function: Function, calls: Sequence[Kernel]) -> list[Lifetime]:
    """Every arena buffer from the step that writes it to the last that reads it; scratch for its step."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    found: list[Lifetime] = []
    for index, call in enumerate(calls):
        for item in call.operands:
            if isinstance(item, ScratchOperand):
                found.append(Lifetime(scratch_name(index), item.nbytes, index, index))
            elif isinstance(item, BufferOperand) and function.buffers[item.buffer].place is Place.ARENA:
                first.setdefault(item.buffer, index)
                last[item.buffer] = index
    found += [Lifetime(name, function.buffers[name].nbytes, first[name], last[name]) for name in first]
    return found


def scratch_name(index: int) -> str:
    return f"scratch of step {index}"


def operand_of(
    item: KernelOperand, index: int, function: Function, offsets: dict[str, int], section: ConstantSection
) -> Operand:
    """Where a kernel's operand lies."""
    if isinstance(item, PackedOperand):
        return Operand(Area.CONSTANT, len(item.values), section.place(item.values), reads=True)
    if isinstance(item, ScratchOperand):
        return Operand(Area.ARENA, item.nbytes, offsets[scratch_name(index)], reads=True, writes=True)
    buffer = function.buffers[item.buffer]
    if buffer.place is Place.CONSTANT:
        return Operand(Area.CONSTANT, buffer.nbytes, section.place(function.values[item.buffer]), reads=True)
    if buffer.place is Place.ARENA:
        return Operand(Area.ARENA, buffer.nbytes, offsets[item.buffer], reads=item.reads, writes=item.writes)
    area, names = (Area.INPUT, function.inputs) if buffer.place is Place.INPUT else (Area.OUTPUT, function.outputs)
    return Operand(area, buffer.nbytes, 0, names.index(item.buffer), item.reads, item.writes)


def waits(steps: Sequence[Step], operands: Sequence[Operand]) -> tuple[int, ...]:
    """Earlier steps that write what this one touches, or read what it writes."""
    return tuple(
        index
        for index, step in enumerate(steps)
        if any(conflict(earlier, later) for earlier in step.operands for later in operands)
    )


def conflict(earlier: Operand, later: Operand) -> bool:
    same = earlier.area is later.area and earlier.index == later.index
    overlap = earlier.offset < later.end and later.offset < earlier.end
    return same and overlap and (earlier.writes or later.writes)
