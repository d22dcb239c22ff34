"""Elementwise nodes joined to the node that feeds them, or to the one that they feed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hexqdq.compile.linalg.loops import respaced, simplified
from hexqdq.compile.linalg.nest import (
    Access,
    Body,
    Buffer,
    Function,
    Instruction,
    Nest,
    Node,
    Part,
    Place,
    Stage,
    dense_strides,
    part_reads,
)


def simplified_function(function: Function) -> Function:
    """Every part with as few loops as possible."""
    nodes = tuple(replace(node, parts=tuple(map(simplified, node.parts))) for node in function.nodes)
    return replace(function, nodes=nodes)


def live(function: Function) -> Function:
    """The nodes that results depend on."""
    needed = set(function.outputs)
    kept: list[Node] = []
    for node in reversed(function.nodes):
        if node.output in needed:
            kept.append(node)
            needed.update(node.reads())
    return replace(function, nodes=tuple(reversed(kept)))


def fused(function: Function) -> Function:
    """Single-use intermediate results computed where they are used, until none is left."""
    nodes = list(function.nodes)
    position = 0
    while position < len(nodes):
        consumer = nodes[position]
        uses = Counter(name for node in nodes for part in node.parts for name in part_reads(part))
        joined = next(
            (
                (producer, result)
                for producer in nodes[:position]
                if uses[producer.output] == 1 and producer.output in consumer.reads()
                if (result := join(producer, consumer, function.buffers)) is not None
            ),
            None,
        )
        if joined is None:
            position += 1
            continue
        nodes[position] = joined[1]
        nodes.remove(joined[0])
        position -= 1
    return replace(function, nodes=tuple(nodes))


def join(producer: Node, consumer: Node, buffers: dict[str, Buffer]) -> Node | None:
    """Both nodes as one, None where they do not fit."""
    if buffers[producer.output].place is not Place.ARENA or len(producer.parts) != 1 or len(consumer.parts) != 1:
        return None
    first, second = producer.parts[0], consumer.parts[0]
    if not isinstance(second, Nest):
        return None
    part: Part | None
    if isinstance(first, Nest) and first.reduce is None:
        part = into_consumer(first, second, producer.output)
    else:
        part = into_producer(first, second, producer.output)
    return None if part is None else Node(producer.label, consumer.output, (part,))


def is_elementwise(nest: Nest) -> bool:
    """Whether the nest is loops of a body that reads neither indices nor tables by more than a byte."""
    plain = all(item.name not in ("index", "extract") for item in nest.finish.body.instructions)
    return nest.reduce is None and plain


def into_producer(first: Part, second: Nest, name: str) -> Part | None:
    """An elementwise nest as the finish of the reduction that it reads, element by element."""
    if not is_elementwise(second):
        return None
    position = next(i for i, access in enumerate(second.finish.reads) if access.buffer == name)
    dense = dense_strides(first.result_extents)
    read = second.finish.reads[position]
    if first.write.strides != dense or read.strides != dense_strides(second.extents) or read.offset:
        return None
    loops = tuple(extent for extent in first.result_extents if extent > 1)
    if loops != first.result_extents:
        return None
    accesses = respaced(second.extents, [*second.finish.reads, second.write], loops)
    if accesses is None:
        return None
    outer = Stage(second.finish.body, tuple(accesses[:-1]), second.finish.tables)
    return replace(first, write=accesses[-1], finish=composed(first.finish, outer, position, position))


def into_consumer(first: Nest, second: Nest, name: str) -> Nest | None:
    """A flat elementwise nest computed inside the nest that reads it."""
    flat = len(first.extents) == 1 and first.is_dense and is_elementwise(first)
    if not flat or any(access.strides[0] not in (0, 1) for access in first.finish.reads):
        return None
    finish = fed(first, second.finish, name, second.reduce is not None)
    if finish is not None:
        return replace(second, finish=finish)
    reduce = fed(first, second.reduce, name, True) if second.reduce else None
    return replace(second, reduce=reduce) if reduce is not None else None


def fed(first: Nest, stage: Stage, name: str, accumulates: bool) -> Stage | None:
    """The stage with the flat nest computed in place of its read of ``name``, None where it has none."""
    for position, place in enumerate(stage.reads):
        if place.buffer == name:
            reads = tuple(moved(item, place) for item in first.finish.reads)
            inner = Stage(first.finish.body, reads, first.finish.tables)
            return composed(inner, stage, position, position + accumulates)
    return None


def moved(item: Access, place: Access) -> Access:
    """A flat nest's read at the element that ``place`` addresses."""
    step = item.strides[0]
    return Access(item.buffer, tuple(step * stride for stride in place.strides), item.offset + step * place.offset)


def composed(inner: Stage, outer: Stage, read: int, argument: int) -> Stage:
    """``outer`` with ``inner``'s result in the place of one argument, which read ``read`` fed.

    Arguments come in the order: the accumulator of either, outer's other reads, inner's reads.
    """
    inner_count, outer_count = len(inner.body.arguments), len(outer.body.arguments)
    leading = inner_count - len(inner.reads)
    reads = (*outer.reads[:read], *outer.reads[read + 1 :], *inner.reads)
    order = [("inner", i) for i in range(leading)]
    order += [("outer", i) for i in range(outer_count) if i != argument]
    order += [("inner", i) for i in range(leading, inner_count)]
    numbers = {key: index for index, key in enumerate(order)}
    types = tuple((inner if owner == "inner" else outer).body.arguments[i] for owner, i in order)
    instructions: list[Instruction] = []
    for owner, stage in (("inner", inner), ("outer", outer)):
        count = len(stage.body.arguments)
        for index, item in enumerate(stage.body.instructions):
            operands = tuple(numbers[owner, operand] for operand in item.operands)
            numbers[owner, count + index] = len(types) + len(instructions)
            own_tables = len(inner.tables) if owner == "outer" and item.name in ("extract", "lookup") else 0
            instructions.append(replace(item, operands=operands, number=item.number + own_tables))
        if owner == "inner":
            numbers["outer", argument] = numbers["inner", inner.body.result]
    body = Body(types, tuple(instructions), numbers["outer", outer.body.result])
    return Stage(body, reads, (*inner.tables, *outer.tables))
