"""Structured linalg operations, generic or named, as loops, accesses and a body."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mlir.ir import AffineDimExpr, AffineMap, AffineMapAttr, ArrayAttr, BlockArgument, DenseI64ArrayAttr, OpView, Value

from hexqdq.compile.linalg.affine import access, extents
from hexqdq.compile.linalg.body import BodyReader
from hexqdq.compile.linalg.nest import Access, Body, Instruction, Nest, Stage, dense_strides
from hexqdq.compile.linalg.read import Reader, constant_body, copy_body, is_tensor, scalar_constant, tensor_type
from hexqdq.errors import CompileError


@dataclass(frozen=True)
class Structured:
    """An operation's loops in their own order, and which of them reduce."""

    op: OpView
    inputs: tuple[Value, ...]
    maps: tuple[AffineMap, ...]
    extents: tuple[int, ...]
    reductions: tuple[int, ...]

    @property
    def output_map(self) -> AffineMap:
        return self.maps[-1]

    @property
    def order(self) -> tuple[int, ...]:
        """The loops, parallel ones first."""
        loops = range(len(self.extents))
        return (*(loop for loop in loops if loop not in self.reductions), *self.reductions)

    def read_inputs(self) -> list[int]:
        """The inputs whose elements the body uses; others, such as a pooling window, only give a shape."""
        arguments = self.op.regions[0].blocks[0].arguments
        return [i for i, value in enumerate(self.inputs) if is_tensor(value) and is_used(arguments[i])]

    @property
    def parallel(self) -> int:
        return len(self.extents) - len(self.reductions)


def structured(op: OpView) -> Structured:
    """The loops of a linalg operation with one result."""
    maps = maps_of(op)
    operands = tuple(op.operands)
    if len(op.results) != 1 or len(operands) != len(maps):
        raise CompileError(f"linalg operation {op.name}", f"has {len(op.results)} results; expected one")
    tensors = [index for index, operand in enumerate(operands) if is_tensor(operand)]
    loops = extents([maps[i] for i in tensors], [tensor_type(operands[i])[0] for i in tensors])
    written = {position for position in range(len(loops)) if depends(maps[-1], position)}
    reductions = tuple(loop for loop in range(len(loops)) if loop not in written)
    return Structured(op, operands[:-1], maps, loops, reductions)


def maps_of(op: OpView) -> tuple[AffineMap, ...]:
    """What every operand's indices are of the loops; linalg.reduce only says which dimensions go."""
    if op.operation.name == "linalg.reduce":
        rank, gone = len(tensor_type(op.operands[0])[0]), set(DenseI64ArrayAttr(op.attributes["dimensions"]))
        loops = [AffineDimExpr.get(loop) for loop in range(rank)]
        kept = [loop for index, loop in enumerate(loops) if index not in gone]
        return AffineMap.get(rank, 0, loops), AffineMap.get(rank, 0, kept)
    name = "indexing_maps" if "indexing_maps" in op.attributes else "linalg.memoized_indexing_maps"
    return tuple(AffineMapAttr(item).value for item in ArrayAttr(op.attributes[name]))


def is_used(value: Value) -> bool:
    return next(iter(value.uses), None) is not None


def depends(affine_map: AffineMap, loop: int) -> bool:
    """Whether a map with unit dimensions reads a loop."""
    return any(
        access("", (1,), AffineMap.get(affine_map.n_dims, 0, [item])).strides[loop] for item in affine_map.results
    )


def permuted(item: Access, order: tuple[int, ...]) -> Access:
    """The access over the loops in another order."""
    return replace(item, strides=tuple(item.strides[loop] for loop in order))


def body_of(reader: Reader, form: Structured, tables: list[Access]) -> tuple[Body, bool]:
    """The operation's body with the output's element first, and whether the body reads it."""
    block = form.op.regions[0].blocks[0]
    arguments = list(block.arguments)
    scalars = [i for i, value in enumerate(form.inputs) if not is_tensor(value)]
    reads_output = is_used(arguments[-1])
    kept = [arguments[-1]] * reads_output + [arguments[i] for i in form.read_inputs()]

    def table(value: Value) -> int:
        shape, _ = tensor_type(value)
        tables.append(Access(reader.name(value), dense_strides(shape)))
        return len(tables) - 1

    bodies = BodyReader([BlockArgument(argument) for argument in kept], table)
    for index in scalars:
        number = scalar_constant(form.inputs[index])
        kind = str(arguments[index].type)
        bodies.numbers[arguments[index]] = bodies.append(Instruction("constant", (), kind, number))
    return renumbered_loops(bodies.read(block), form.order), reads_output


def renumbered_loops(body: Body, order: tuple[int, ...]) -> Body:
    """The body with its loop indices counted in another order."""
    items = tuple(replace(i, number=order.index(i.number)) if i.name == "index" else i for i in body.instructions)
    return replace(body, instructions=items)


def generic(reader: Reader, op: OpView) -> None:
    """Any structured operation as one nest."""
    form = structured(op)
    tables: list[Access] = []
    body, reads_output = body_of(reader, form, tables)
    reads = [
        permuted(reader.read(value, affine_map), form.order)
        for value, affine_map in ((form.inputs[i], form.maps[i]) for i in form.read_inputs())
    ]
    start = initial(reader, form) if form.reductions else None
    if reads_output and start is None:
        reads.insert(0, permuted(reader.read(op.operands[-1], form.output_map), form.order))
    stage = Stage(body, tuple(reads), tuple(tables))
    output = reader.arena(op.results[0])
    target = permuted(access(output, tensor_type(op.results[0])[0], form.output_map), form.order)
    write = replace(target, strides=target.strides[: form.parallel])
    loops = tuple(form.extents[loop] for loop in form.order)
    if start is None:
        nest = Nest(loops, form.parallel, write, stage)
    else:
        _, element = tensor_type(op.results[0])
        nest = Nest(loops, form.parallel, write, Stage(copy_body(element)), start, stage)
    reader.node(op.operation.name.removeprefix("linalg."), output, nest)


def initial(reader: Reader, form: Structured) -> Stage:
    """How a reduction's accumulator starts: from a number or from the tensor it updates."""
    value = form.op.operands[-1]
    if value in reader.fills:
        return Stage(constant_body(*reader.fills[value]))
    item = permuted(reader.read(value, form.output_map), form.order)
    _, element = tensor_type(value)
    return Stage(copy_body(element), (replace(item, strides=item.strides[: form.parallel]),))
