"""TOSA's ARGMAX as a reduction with one result."""

from __future__ import annotations

from mlir.ir import AffineMapAttr, ArrayAttr, OpView, Value

from hexqdq.compile.linalg.affine import extents
from hexqdq.compile.linalg.body import BodyReader
from hexqdq.compile.linalg.forms.structured import depends, permuted
from hexqdq.compile.linalg.fuse import composed
from hexqdq.compile.linalg.nest import Access, Body, Instruction, Nest, Stage, dense_strides
from hexqdq.compile.linalg.read import Reader, constant_body, tensor_type
from hexqdq.errors import CompileError

BODY = ("linalg.index", "arith.index_cast", "arith.cmpi", "arith.select", "arith.select", "linalg.yield")
"""The operations of an argmax: its results are the index and the largest value so far.

Upstream may have fused arithmetic before them."""
LOWEST = -(2**31)
VALUE_BITS = {"i8": 8, "i16": 16}


def argmax(reader: Reader, op: OpView) -> None:
    """The largest of 32-bit keys: the value in the upper bits, below it how far the index is from the end.

    So the first of equal values wins. Raises CompileError where operation or sizes are others.
    """
    maps = [AffineMapAttr(item).value for item in ArrayAttr(op.attributes["indexing_maps"])]
    inputs = list(op.operands)[:-2]
    loops = extents(maps[:-2], [tensor_type(value)[0] for value in inputs])
    kept = [loop for loop in range(len(loops)) if depends(maps[-1], loop)]
    reduced = [loop for loop in range(len(loops)) if loop not in kept]
    body = tuple(item.operation.name for item in op.regions[0].blocks[0].operations)
    if body[-len(BODY) :] != BODY or len(reduced) != 1 or len(list(op.results[1].uses)):
        raise CompileError("linalg.generic", f"two results from {', '.join(body)}; expected an argmax")
    order = (*kept, *reduced)
    reads = [permuted(reader.read(value, each), order) for value, each in zip(inputs, maps, strict=False)]
    values = Stage(value_body(op), tuple(reads))
    element = values.body.type_of(values.body.result)
    last = loops[reduced[0]] - 1
    width = last.bit_length()
    if VALUE_BITS.get(element, 32) + width > 32:
        raise CompileError("linalg.generic", f"argmax of {element} over {last + 1} elements; expected fewer bits")
    output = reader.arena(op.results[0])
    keys = Stage(key_body(element, len(kept), last, width), (Access("", ()),))
    nest = Nest(
        tuple(loops[loop] for loop in order),
        len(kept),
        Access(output, dense_strides(tuple(loops[loop] for loop in kept))),
        Stage(index_body(last, width)),
        Stage(constant_body("i32", LOWEST)),
        composed(values, keys, 0, 1),
    )
    reader.node("argmax", output, nest)


def value_body(op: OpView) -> Body:
    """What upstream fused before the comparison: the value that is compared, from the inputs."""
    block = op.regions[0].blocks[0]
    operations = list(block.operations)
    bodies = BodyReader(list(block.arguments)[:-2], no_table)
    for item in operations[: -len(BODY)]:
        bodies.numbers[item.operation.results[0]] = bodies.operation(item)
    result = bodies.value(operations[-len(BODY) + 2].operands[0])  # may append a constant
    return Body(bodies.types, tuple(bodies.instructions), result)


def no_table(value: Value) -> int:
    """Refuses a body that looks values up."""
    raise CompileError("linalg.generic", f"an argmax of what {value} holds; expected plain arithmetic")


def key_body(element: str, loop: int, last: int, width: int) -> Body:
    """``max(key, (value << width) + (last - index))``."""
    return Body(
        ("i32", element),
        (
            Instruction("arith.extsi", (1,), "i32"),
            Instruction("constant", (), "i32", width),
            Instruction("arith.shli", (2, 3), "i32"),
            Instruction("constant", (), "i32", last),
            Instruction("index", (), "i32", loop),
            Instruction("arith.subi", (5, 6), "i32"),
            Instruction("arith.addi", (4, 7), "i32"),
            Instruction("arith.maxsi", (0, 8), "i32"),
        ),
        9,
    )


def index_body(last: int, width: int) -> Body:
    """``last - (key & (2**width - 1))``."""
    return Body(
        ("i32",),
        (
            Instruction("constant", (), "i32", (1 << width) - 1),
            Instruction("arith.andi", (0, 1), "i32"),
            Instruction("constant", (), "i32", last),
            Instruction("arith.subi", (3, 2), "i32"),
        ),
        4,
    )
