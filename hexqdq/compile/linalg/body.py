"""Regions of linalg operations as scalar programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mlir.ir import Block, BlockArgument, OpView, RankedTensorType, Value

from hexqdq.compile.linalg.nest import Body, Instruction
from hexqdq.errors import CompileError

CASTS = frozenset({"arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast", "arith.index_castui"})
PROPERTIES = {"arith.cmpi": ("predicate",), "tosa.apply_scale": ("rounding_mode",)}
"""Attributes that change what an operation means; the others are hints."""
ARITHMETIC = (
    "arith.addi",
    "arith.subi",
    "arith.muli",
    "arith.divsi",
    "arith.divui",
    "arith.remsi",
    "arith.remui",
    "arith.andi",
    "arith.ori",
    "arith.xori",
    "arith.shli",
    "arith.shrsi",
    "arith.shrui",
    "arith.maxsi",
    "arith.minsi",
    "arith.maxui",
    "arith.minui",
    "arith.select",
    "math.ctlz",
)
PLAIN = CASTS.union(PROPERTIES, ARITHMETIC)
BYTE_TABLE = ([256], "i8")
"""Shape and element type of a table that bytes index."""
WORD = {"index": "i32", "i48": "i64"}
"""Types that bodies widen or narrow: every index of a segment fits 32 bits, memory holds i48 as i64."""


def type_name(text: object) -> str:
    """A scalar type as bodies name it."""
    return WORD.get(str(text), str(text))


class BodyReader:
    """Reads one block; ``loop_inputs`` are the block arguments that the body may use, in order."""

    def __init__(self, arguments: list[BlockArgument], table: Callable[[Value], int]) -> None:
        self.types = tuple(type_name(argument.type) for argument in arguments)
        self.numbers: dict[Value, int] = {argument: index for index, argument in enumerate(arguments)}
        self.instructions: list[Instruction] = []
        self.table = table

    def read(self, block: Block) -> Body:
        """The block as a body; raises CompileError at an operation that has no form."""
        for op in block.operations:
            if op.operation.name in ("linalg.yield", "tensor.yield"):
                result = self.value(op.operands[0])  # may append a constant
                return needed(Body(self.types, tuple(self.instructions), result))
            self.numbers[op.operation.results[0]] = self.operation(op)
        raise CompileError("linalg body", "ends without a yield")

    def value(self, value: Value) -> int:
        """The number of a value, reading a constant from outside the block where it is one."""
        if value not in self.numbers:
            owner = None if isinstance(value, BlockArgument) else value.owner
            if owner is None or owner.name != "arith.constant":
                raise CompileError("linalg body", f"uses {value} from outside the operation; expected a constant")
            self.numbers[value] = self.constant(owner)
        return self.numbers[value]

    def append(self, instruction: Instruction) -> int:
        self.instructions.append(instruction)
        return len(self.types) + len(self.instructions) - 1

    def constant(self, op: OpView) -> int:
        number = int(op.attributes["value"].value)
        return self.append(Instruction("constant", (), type_name(op.results[0].type), number))

    def operation(self, op: OpView) -> int:
        name = op.operation.name
        kind = type_name(op.operation.results[0].type)
        if name == "arith.constant":
            return self.constant(op)
        if name == "linalg.index":
            return self.append(Instruction("index", (), kind, int(op.attributes["dim"].value)))
        if name == "tensor.extract":
            indices = tuple(self.value(operand) for operand in list(op.operands)[1:])
            byte = self.byte_index(op.operands[0], indices)
            if byte is not None:
                return self.append(Instruction("lookup", (byte,), kind, self.table(op.operands[0])))
            return self.append(Instruction("extract", indices, kind, self.table(op.operands[0])))
        if name not in PLAIN:
            raise CompileError("linalg body", f"operation {name} has no vector form")
        operands = tuple(self.value(operand) for operand in op.operands)
        if name in CASTS and type_name(op.operands[0].type) == kind:
            return operands[0]
        return self.append(Instruction(name, operands, kind, attributes=properties(op, name)))

    def byte_index(self, table: Value, indices: tuple[int, ...]) -> int | None:
        """The i8 value ``x`` of an index ``x + 128`` into a table of 256 bytes."""
        kind = RankedTensorType(table.type)
        if (kind.shape, str(kind.element_type)) != BYTE_TABLE:
            return None
        total = self.instruction(indices[0])
        if total is None or total.name != "arith.addi":
            return None
        wide, offset = (self.instruction(operand) for operand in total.operands)
        if wide is None or wide.name != "arith.index_cast" or offset is None or offset.number != 128:
            return None
        byte = wide.operands[0]
        return byte if Body(self.types, tuple(self.instructions), 0).type_of(byte) == "i8" else None

    def instruction(self, number: int) -> Instruction | None:
        """The instruction that makes a value, None for an argument."""
        return self.instructions[number - len(self.types)] if number >= len(self.types) else None


def needed(body: Body) -> Body:
    """The body without the instructions that its result does not need."""
    first = len(body.arguments)
    used, waiting = {body.result}, [body.result]
    while waiting:
        value = waiting.pop()
        operands = body.instructions[value - first].operands if value >= first else ()
        waiting += [operand for operand in operands if operand not in used]
        used.update(operands)
    numbers = {value: value for value in range(first)}
    kept: list[Instruction] = []
    for value, item in enumerate(body.instructions, first):
        if value in used:
            numbers[value] = first + len(kept)
            kept.append(replace(item, operands=tuple(numbers[operand] for operand in item.operands)))
    return Body(body.arguments, tuple(kept), numbers[body.result])


def properties(op: OpView, name: str) -> str:
    """The attributes that an operation cannot be written without."""
    return ", ".join(f"{key} = {op.attributes[key]}" for key in PROPERTIES.get(name, ()))
