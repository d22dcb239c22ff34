"""Kernels of nests: vectors along the last parallel loop, reductions in registers."""

from __future__ import annotations

from collections.abc import Sequence

from hexqdq.compile.kernels.body import write_body
from hexqdq.compile.kernels.writer import KernelWriter, Lanes, short_lanes
from hexqdq.compile.linalg.nest import ELEMENT_BYTES, Access, Nest, Stage

LONGEST_UNROLLED = 7
"""Innermost reduction loops of up to this many iterations are written out."""
LONGEST_OUTER = 3


def write_nest(writer: KernelWriter, nest: Nest) -> None:
    """The nest's loops; pure copies of rows become memcpy."""
    if copies_rows(writer, nest):
        write_copy(writer, nest)
        return
    lanes = lanes_of(writer, nest)
    *outer, _ = nest.result_extents
    with writer.loops([*outer, lanes.count]) as indices:
        indices[-1] = writer.chunk_start(lanes, indices[-1])
        write_element(writer, nest, indices, lanes)


def write_element(writer: KernelWriter, nest: Nest, indices: list[str], lanes: Lanes) -> None:
    """One vector of results at some parallel indices."""
    leading: list[str] = []
    if nest.reduce is not None and nest.start is not None:
        first = write_stage(writer, nest.start, [], indices, lanes)
        element = accumulator_type(nest)
        leading = [write_reduction(writer, nest, [first], element, indices, lanes)]
    result = write_stage(writer, nest.finish, leading, indices, lanes)
    writer.store(result, nest.write, indices, lanes)


def accumulator_type(nest: Nest) -> str:
    return nest.finish.body.arguments[0]


def write_reduction(
    writer: KernelWriter, nest: Nest, carried: list[str], element: str, indices: list[str], lanes: Lanes
) -> str:
    """The reduction loops from the next one on; returns the accumulator after them."""
    assert nest.reduce is not None
    if len(indices) == len(nest.extents):
        return write_stage(writer, nest.reduce, carried, indices, lanes, nest.parallel - 1)
    extent = nest.extents[len(indices)]
    innermost = len(indices) + 1 == len(nest.extents)
    if extent <= (LONGEST_UNROLLED if innermost else LONGEST_OUTER):
        for number in range(extent):
            place = [*indices, writer.text.constant(number, "i32")]
            carried = [write_reduction(writer, nest, carried, element, place, lanes)]
        return carried[0]
    kind = f"vector<{lanes.size}x{element}>" if lanes.size else element
    with writer.text.loop(extent, [(carried[0], kind)]) as loop:
        loop.yields = [write_reduction(writer, nest, loop.carried, element, [*indices, loop.index], lanes)]
    return loop.results[0]


def write_stage(
    writer: KernelWriter, stage: Stage, leading: list[str], indices: list[str], lanes: Lanes, spread: int = -1
) -> str:
    """A stage's loads and body; ``spread`` is the lane loop where it is not the last."""
    position = spread if spread >= 0 else len(indices) - 1
    loads = [load(writer, access, indices, lanes, position) for access in stage.reads]
    around = writer.surroundings(stage, len(leading), indices, lanes.size, position)
    return write_body(writer.text, stage.body, [*leading, *loads], around)


def load(writer: KernelWriter, access: Access, indices: list[str], lanes: Lanes, position: int) -> str:
    if position == len(access.strides) - 1:
        return writer.load(access, indices, lanes)
    # the lane loop last, so that alignment sees how it steps
    order = [*(i for i in range(len(indices)) if i != position), position]
    turned = Access(access.buffer, tuple(access.strides[i] for i in order), access.offset)
    return writer.load(turned, [indices[i] for i in order], lanes)


def accesses_with_lane(nest: Nest) -> list[tuple[Access, int]]:
    """Every access that fills lanes, with its stride along the lane loop."""
    lane = nest.parallel - 1
    stages: Sequence[Stage] = nest.stages
    return [(access, access.strides[lane]) for stage in stages for access in stage.reads] + [
        (nest.write, nest.write.strides[lane])
    ]


def lanes_of(writer: KernelWriter, nest: Nest) -> Lanes:
    """How the last parallel loop is cut: a whole vector of the narrowest tensor that it walks."""
    extent = nest.extents[nest.parallel - 1]
    accesses = accesses_with_lane(nest)
    gathers = any(item.name == "extract" for stage in nest.stages for item in stage.body.instructions)
    if gathers or extent == 1 or nest.write.strides[-1] != 1 or any(stride not in (0, 1) for _, stride in accesses):
        return Lanes(extent, 0)
    narrowest = min(ELEMENT_BYTES[writer.buffers[access.buffer].element] for access, stride in accesses if stride)
    size = writer.style.vector_bytes // narrowest
    if extent >= size or (
        writer.style.overrun and nest.is_dense and writer.fills(nest.write.buffer, nest.result_extents)
    ):
        return Lanes(extent, size)
    return short_lanes(extent)


def copies_rows(writer: KernelWriter, nest: Nest) -> bool:
    """Whether the nest only moves runs of bytes."""
    if nest.reduce is not None or not nest.finish.body.copies:
        return False
    (read,) = nest.finish.reads
    source, target = writer.buffers[read.buffer], writer.buffers[nest.write.buffer]
    same = source.form == target.form and source.element == target.element
    return same and read.strides[-1] == 1 and nest.write.strides[-1] == 1


def write_copy(writer: KernelWriter, nest: Nest) -> None:
    (read,) = nest.finish.reads
    *outer, length = nest.extents
    size = ELEMENT_BYTES[writer.buffers[read.buffer].element]
    with writer.loops(outer) as indices:
        zero = writer.text.constant(0, "i32")
        source = writer.pointer(read, [*indices, zero])
        target = writer.pointer(nest.write, [*indices, zero])
        nbytes = writer.text.constant(length * size, "i32")
        writer.text.emit(
            f'"llvm.intr.memcpy"({target}, {source}, {nbytes}) <{{isVolatile = false}}> : '
            "(!llvm.ptr, !llvm.ptr, i32) -> ()"
        )
