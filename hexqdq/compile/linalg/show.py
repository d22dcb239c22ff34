"""A function's nodes as text for people: loops, accesses and bodies."""

from __future__ import annotations

from collections.abc import Iterator

from hexqdq.compile.linalg.nest import Access, Body, Buffer, Contraction, Function, Instruction, Nest, Node, Stage


def text_of(function: Function) -> str:
    """Every node in order; constants are named, not printed."""
    lines = [f"segment {function.name}({', '.join(function.inputs)}) -> {', '.join(function.outputs)}"]
    for node in function.nodes:
        lines += node_lines(node, function.buffers)
    return "\n".join(lines) + "\n"


def node_lines(node: Node, buffers: dict[str, Buffer]) -> Iterator[str]:
    yield ""
    yield f"{buffer_text(buffers[node.output])} = {node.label}"
    for name in node.reads():
        yield f"  from {buffer_text(buffers[name])}"
    for part in node.parts:
        if isinstance(part, Contraction):
            yield from contraction_lines(part)
        else:
            yield from nest_lines(part)


def buffer_text(buffer: Buffer) -> str:
    shape = "x".join(map(str, buffer.shape))
    return f"{buffer.name}: {shape}x{buffer.element} {buffer.form.value} {buffer.place.value}"


def contraction_lines(part: Contraction) -> Iterator[str]:
    pixels, taps = extents_text(part.extents), extents_text(part.taps)
    yield f"  contraction of {pixels} pixels, {part.channels} channels, {taps} taps, depth {part.depth}"
    yield f"    zero points {part.zero_point}, {part.weight_zero_point}; bias {part.bias}"
    yield f"    activation {access_text(part.activation)}"
    yield f"    weights {access_text(part.weights)}"
    yield from stage_lines("finish", part.finish)
    yield f"    write {access_text(part.write)}"


def nest_lines(nest: Nest) -> Iterator[str]:
    reduced = f", reduce {extents_text(nest.extents[nest.parallel :])}" if nest.reduce else ""
    yield f"  loops {extents_text(nest.result_extents)}{reduced}"
    for name, stage in (("start", nest.start), ("reduce", nest.reduce), ("finish", nest.finish)):
        if stage is not None:
            yield from stage_lines(name, stage)
    yield f"    write {access_text(nest.write)}"


def extents_text(extents: tuple[int, ...]) -> str:
    return "x".join(map(str, extents)) or "1"


def access_text(access: Access) -> str:
    """``buffer[offset + strides]``."""
    strides = ", ".join(map(str, access.strides))
    return f"{access.buffer}[{access.offset} + ({strides})]"


def stage_lines(name: str, stage: Stage) -> Iterator[str]:
    leading = len(stage.body.arguments) - len(stage.reads)
    yield f"    {name}"
    for index, access in enumerate(stage.reads):
        yield f"      %{leading + index} = {access_text(access)}"
    for index, table in enumerate(stage.tables):
        yield f"      table {index} = {table.buffer}"
    yield from (f"      {line}" for line in body_lines(stage.body))


def body_lines(body: Body) -> Iterator[str]:
    for number, item in enumerate(body.instructions, len(body.arguments)):
        yield f"%{number} = {instruction_text(item)}"
    yield f"yield %{body.result}"


def instruction_text(item: Instruction) -> str:
    operands = ", ".join(f"%{operand}" for operand in item.operands)
    number = f" {item.number}" if item.name in ("constant", "index", "extract", "lookup") else ""
    return f"{item.name}{number} {operands}".rstrip() + f" : {item.type}"
