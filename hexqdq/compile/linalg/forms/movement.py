"""Data movements of linalg and tensor operations as copies."""

from __future__ import annotations

from mlir.ir import OpView

from hexqdq.compile.linalg.nest import Access, Part, dense_strides
from hexqdq.compile.linalg.read import Reader, copy, fill, scalar_constant, tensor_type


def view(reader: Reader, op: OpView) -> None:
    """expand_shape, collapse_shape: the same elements under another shape."""
    source, result = op.operands[0], op.results[0]
    if source in reader.fills:
        reader.fills[result] = reader.fills[source]
    elif source in reader.names:
        reader.names[result] = reader.names[source]


def empty(reader: Reader, op: OpView) -> None:
    """tensor.empty: nothing to compute; whoever writes the tensor makes its buffer."""


def filled(reader: Reader, op: OpView) -> None:
    """linalg.fill: remembered until someone reads it."""
    _, element = tensor_type(op.results[0])
    reader.fills[op.results[0]] = (element, scalar_constant(op.operands[0]))


def transpose(reader: Reader, op: OpView) -> None:
    """linalg.transpose: dimension i of the result is dimension permutation[i] of the source."""
    shape, element = tensor_type(op.operands[0])
    permutation = list(op.attributes["permutation"])
    source_strides = dense_strides(shape)
    extents = tuple(shape[axis] for axis in permutation)
    source = Access(reader.name(op.operands[0]), tuple(source_strides[axis] for axis in permutation))
    output = reader.arena(op.results[0])
    reader.node("transpose", output, copy(extents, element, source, Access(output, dense_strides(extents))))


def broadcast(reader: Reader, op: OpView) -> None:
    """linalg.broadcast: the listed dimensions of the result are new."""
    shape, element = tensor_type(op.operands[0])
    extents, _ = tensor_type(op.results[0])
    added = set(op.attributes["dimensions"])
    kept = iter(dense_strides(shape))
    strides = tuple(0 if axis in added else next(kept) for axis in range(len(extents)))
    source = Access(reader.name(op.operands[0]), strides)
    output = reader.arena(op.results[0])
    reader.node("broadcast", output, copy(extents, element, source, Access(output, dense_strides(extents))))


def pad(reader: Reader, op: OpView) -> None:
    """tensor.pad with a constant: a fill, then the source in its place."""
    shape, element = tensor_type(op.operands[0])
    padded, _ = tensor_type(op.results[0])
    low = static_values(op, "static_low", 1)
    number = scalar_constant(list(op.regions[0].blocks[0].operations)[-1].operands[0])
    source = Access(reader.name(op.operands[0]), dense_strides(shape))
    output = reader.arena(op.results[0])
    strides = dense_strides(padded)
    target = Access(output, strides, sum(a * b for a, b in zip(low, strides, strict=True)))
    reader.node("pad", output, fill(output, padded, element, number), copy(shape, element, source, target))


DYNAMIC = -(2**63)
"""How an operation's attribute marks a number that is an operand instead."""


def static_values(op: OpView, name: str, group: int) -> tuple[int, ...]:
    """Numbers of an attribute, those marked dynamic from the operands of ``group``, which must be constant."""
    counts = list(op.attributes["operandSegmentSizes"])
    first = sum(counts[:group])
    operands = iter(list(op.operands)[first : first + counts[group]])
    return tuple(scalar_constant(next(operands)) if item == DYNAMIC else item for item in op.attributes[name])


def window(op: OpView, whole: tuple[int, ...], first_group: int) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Sizes, strides and offset of a slice of a tensor of shape ``whole``."""
    offsets, sizes, steps = (
        static_values(op, f"static_{key}", first_group + i) for i, key in enumerate(("offsets", "sizes", "strides"))
    )
    dense = dense_strides(whole)
    strides = tuple(stride * step for stride, step in zip(dense, steps, strict=True))
    return sizes, strides, sum(a * b for a, b in zip(offsets, dense, strict=True))


def extract_slice(reader: Reader, op: OpView) -> None:
    """tensor.extract_slice: a copy of the window."""
    shape, element = tensor_type(op.operands[0])
    sizes, strides, offset = window(op, shape, 1)
    source = Access(reader.name(op.operands[0]), strides, offset)
    output = reader.arena(op.results[0])
    reader.node("slice", output, copy(sizes, element, source, Access(output, dense_strides(sizes))))


def insert_slice(reader: Reader, op: OpView) -> None:
    """tensor.insert_slice: the destination's parts, then the source in its window.

    A chain of insertions into an empty tensor, as concatenation makes, becomes one node of many
    copies: the destination's node is extended when nobody else reads it.
    """
    source = op.operands[0]
    _, element = tensor_type(source)
    whole, _ = tensor_type(op.results[0])
    sizes, strides, offset = window(op, whole, 2)
    read = Access(reader.name(source), dense_strides(sizes))
    parts, output = destination_parts(reader, op)
    reader.node("insert", output, *parts, copy(sizes, element, read, Access(output, strides, offset)))


def destination_parts(reader: Reader, op: OpView) -> tuple[tuple[Part, ...], str]:
    """The parts that make the destination of an insertion, and the buffer that they write."""
    destination, result = op.operands[1], op.results[0]
    whole, element = tensor_type(result)
    chain = reader.names.get(destination)
    single = len(list(destination.uses)) == 1
    if chain is not None and single and reader.nodes and reader.nodes[-1].output == chain:
        last = reader.nodes.pop()
        reader.names[result] = chain
        return last.parts, chain
    output = reader.arena(result)
    if destination in reader.fills:
        fill_element, number = reader.fills[destination]
        return (fill(output, whole, fill_element, number),), output
    if chain is None:
        return (), output
    everything = dense_strides(whole)
    return (copy(whole, element, Access(chain, everything), Access(output, everything)),), output


def concat(reader: Reader, op: OpView) -> None:
    """tensor.concat: every operand copied to its place."""
    axis = int(op.attributes["dim"].value)
    whole, element = tensor_type(op.results[0])
    sources = [(reader.name(operand), tensor_type(operand)[0]) for operand in op.operands]
    output = reader.arena(op.results[0])
    strides = dense_strides(whole)
    parts, position = [], 0
    for name, shape in sources:
        target = Access(output, strides, position * strides[axis])
        parts.append(copy(shape, element, Access(name, dense_strides(shape)), target))
        position += shape[axis]
    assert position == whole[axis]
    reader.node("concat", output, *parts)
