"""Scalar bodies written over vectors of lanes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hexqdq.compile.kernels.rescale import NARROW, Factor, write_rescale
from hexqdq.compile.kernels.text import Text, vector
from hexqdq.compile.linalg.nest import Body, Instruction
from hexqdq.errors import CompileError

FIXED = frozenset({-1, 0, 1, -128, 127, 128, 255, -32768, 32767, -(2**31), 2**31 - 1})
"""Numbers that stay in the text: they come from types, not from a model."""
SHIFTS = {"tosa.apply_scale": 2, "arith.shrsi": 1, "arith.shli": 1, "arith.shrui": 1}
"""Operand that is a shift: a number known in the text lets the compiler choose narrower instructions."""


@dataclass(frozen=True)
class Surroundings:
    """What a body sees: loop indices, the lane loop (None: scalar), numbers and tables of the kernel.

    ``number`` writes a model's number that equal kernels do not share; ``extract`` loads an
    element of a table by its indices, ``lookup`` the bytes of one at every lane's own byte.
    ``narrow`` holds the arguments whose values are all 0..32767.
    """

    lanes: int
    indices: Sequence[str]
    lane_loop: int | None
    number: Callable[[int, str], str]
    extract: Callable[[int, list[str], str], str]
    lookup: Callable[[int, str], str]
    arch: str
    narrow: frozenset[int]


def write_body(text: Text, body: Body, arguments: Sequence[str], around: Surroundings) -> str:
    """The body's lines; returns the name of its result."""
    names = list(arguments)
    kept = structural(body)
    for index, item in enumerate(body.instructions):
        names.append(write_instruction(text, body, item, names, around, index in kept))
    return names[body.result]


def structural(body: Body) -> set[int]:
    """The constants of a body that belong to its text."""
    first = len(body.arguments)
    kept = {i for i, item in enumerate(body.instructions) if item.name == "constant" and item.number in FIXED}
    for item in body.instructions:
        if item.name in SHIFTS:
            kept.add(item.operands[SHIFTS[item.name]] - first)
        if item.name == "tosa.apply_scale" and exact_power(body, item) is not None:
            kept.add(item.operands[1] - first)
    return kept


def constant_of(body: Body, value: int) -> int | None:
    """The number of a value that is a constant."""
    index = value - len(body.arguments)
    if index < 0 or body.instructions[index].name != "constant":
        return None
    return body.instructions[index].number


def exact_power(body: Body, item: Instruction) -> int | None:
    """The shift of a rescale by exactly one: its multiplier is 1 << shift."""
    multiplier, shift = (constant_of(body, operand) for operand in item.operands[1:3])
    return shift if multiplier is not None and shift is not None and multiplier == 1 << shift else None


def write_instruction(
    text: Text, body: Body, item: Instruction, names: list[str], around: Surroundings, fixed: bool
) -> str:
    kind = vector(item.type, around.lanes)
    if item.name == "constant":
        if fixed:
            return text.constant(item.number, kind)
        return splat(text, around.number(item.number, item.type), item.type, around.lanes)
    if item.name == "index":
        return write_index(text, item.number, around)
    operands = [names[operand] for operand in item.operands]
    if item.name == "extract":
        return around.extract(item.number, operands, item.type)
    if item.name == "lookup":
        return around.lookup(item.number, operands[0])
    if item.name == "tosa.apply_scale":
        if exact_power(body, item) is not None and body.type_of(item.operands[0]) == item.type:
            return operands[0]
        return apply_scale(text, body, item, operands, around)
    types = ", ".join(vector(body.type_of(operand), around.lanes) for operand in item.operands)
    name = {"arith.index_cast": "arith.extsi", "arith.index_castui": "arith.extui"}.get(item.name, item.name)
    properties = f" <{{{item.attributes}}}>" if item.attributes else ""
    return text.op(f'"{name}"({", ".join(operands)}){properties} : ({types}) -> {kind}')


def splat(text: Text, scalar: str, element: str, lanes: int) -> str:
    """A scalar of the function's head in every lane."""
    return text.hoisted(f"vector.broadcast {scalar} : {element} to {vector(element, lanes)}") if lanes else scalar


def write_index(text: Text, loop: int, around: Surroundings) -> str:
    """The loop's index in every lane; lanes count up along their own loop."""
    scalar = around.indices[loop]
    if not around.lanes:
        return scalar
    kind = vector("i32", around.lanes)
    same = text.op(f"vector.broadcast {scalar} : i32 to {kind}")
    if loop != around.lane_loop:
        return same
    steps = text.hoisted(f"arith.constant dense<[{', '.join(map(str, range(around.lanes)))}]> : {kind}")
    return text.op(f"arith.addi {same}, {steps} : {kind}")


def apply_scale(text: Text, body: Body, item: Instruction, operands: list[str], around: Surroundings) -> str:
    """TOSA's SINGLE_ROUND product; raises CompileError for another rounding."""
    if "SINGLE_ROUND" not in item.attributes:
        raise CompileError("tosa.apply_scale", f"{item.attributes}; expected SINGLE_ROUND")
    value, multiplier, shift = item.operands
    number = constant_of(body, multiplier)
    is_narrow = multiplier in around.narrow if number is None else 0 <= number < NARROW
    factor = Factor(
        operands[1],
        body.type_of(multiplier),
        is_narrow,
        operands[2],
        body.type_of(shift),
        constant_of(body, shift),
    )
    return write_rescale(text, operands[0], body.type_of(value), factor, item.type, around.lanes, around.arch)
