"""Kernels of contractions: tiles of sums in registers, then the finish over whole rows of channels."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hexqdq.compile.kernels.micro import MicroKernel, Tile, micro_kernel
from hexqdq.compile.kernels.nest import write_stage
from hexqdq.compile.kernels.pack import BLOCK, WORD, PackedWeights, packed_weights
from hexqdq.compile.kernels.writer import KernelWriter, Lanes, short_lanes
from hexqdq.compile.linalg.nest import ELEMENT_BYTES, Access, Buffer, Contraction, Form, Function, dense_strides

SCRATCH = "scratch"
SUM_BYTES = 4


@dataclass(frozen=True)
class Plan:
    """One contraction's tiling: the last pixel loop in tiles of rows, channels in tiles of vectors."""

    part: Contraction
    micro: MicroKernel
    tile: Tile
    packed: PackedWeights

    @property
    def row(self) -> Lanes:
        """The last pixel loop cut into tiles."""
        return Lanes(self.part.extents[-1], self.tile.rows)

    @property
    def vectors(self) -> int:
        return self.packed.blocks * BLOCK // self.micro.lanes

    @property
    def columns(self) -> Lanes:
        """Vectors of channels cut into tiles."""
        return Lanes(self.vectors, self.tile.vectors)

    @property
    def width(self) -> int:
        """Channels of a scratch row."""
        return self.packed.blocks * BLOCK


def write_contraction(writer: KernelWriter, function: Function, part: Contraction) -> None:
    """The kernel's loops; weights and the start of the sums are packed operands."""
    if not part.extents:
        part = with_one_pixel(part)
    bias = function.values[part.bias] if part.bias else None
    packed = packed_weights(part, function.values[part.weights.buffer], bias)
    micro = micro_kernel(writer.style, part.channels, packed.zero_point)
    tile = micro.tile(part.extents[-1], packed.blocks * BLOCK // micro.lanes)
    plan = Plan(part, micro, tile, packed)
    writer.packed("packed weights", packed.weights.tobytes())
    writer.packed("packed start", packed.start.tobytes())
    writer.scratch(tile.rows * plan.width * SUM_BYTES)
    *outer, _ = part.extents
    with writer.loops([*outer, plan.row.count]) as indices:
        indices[-1] = writer.chunk_start(plan.row, indices[-1])
        write_sums(writer, plan, indices)
        write_finish(writer, plan, indices)


def with_one_pixel(part: Contraction) -> Contraction:
    """A contraction of a single pixel with a loop for it."""

    def wider(access: Access) -> Access:
        return replace(access, strides=(0, *access.strides))

    finish = replace(part.finish, reads=tuple(wider(access) for access in part.finish.reads))
    write = replace(part.write, strides=(part.channels, *part.write.strides))
    return replace(part, extents=(1,), activation=wider(part.activation), write=write, finish=finish)


def write_sums(writer: KernelWriter, plan: Plan, indices: list[str]) -> None:
    """Every tile of channels of a tile of pixels, into the scratch rows."""
    text, tile, micro = writer.text, plan.tile, plan.micro
    rows = [activation_row(writer, plan, indices, row) for row in range(tile.rows)]
    corrections = zero_point_terms(writer, plan, rows)
    with text.loop(plan.columns.count) as columns:
        first = writer.chunk_start(plan.columns, columns.index)
        places = [vector_place(writer, plan, first, v) for v in range(tile.vectors)]
        starts = [
            text.pointer(
                writer.arguments["packed start"], [(first, micro.lanes * SUM_BYTES)], v * micro.lanes * SUM_BYTES
            )
            for v in range(tile.vectors)
        ]
        sums = [micro.begin(text, start) for _ in range(tile.rows) for start in starts]
        sums = write_taps(writer, plan, places, rows, sums)
        for row in range(tile.rows):
            for v in range(tile.vectors):
                value = micro.end(text, sums[row * tile.vectors + v], starts[v])
                if corrections:
                    value = text.op(f"arith.addi {value}, {corrections[row]} : vector<{micro.lanes}xi32>")
                offset = (row * plan.width + v * micro.lanes) * SUM_BYTES
                target = text.pointer(writer.arguments[SCRATCH], [(first, micro.lanes * SUM_BYTES)], offset)
                text.store(value, target, f"vector<{micro.lanes}xi32>", micro.lanes * SUM_BYTES)


def zero_point_terms(writer: KernelWriter, plan: Plan, rows: list[str]) -> list[str]:
    """What every pixel's sums lack, in all lanes: ``-(zero_point + offset) * sum(u)``; empty where that is 0."""
    text, micro = writer.text, plan.micro
    factor = zero_point_factor(writer, plan)  # also where it is 0: kernels of all targets take the same operands
    if not plan.packed.zero_point + micro.offset:
        return []
    zeros = [text.constant(0, micro.accumulator) for _ in rows]
    sums = [micro.total(text, value) for value in write_taps(writer, plan, [], rows, zeros)]
    return [text.op(f"arith.muli {value}, {factor} : vector<{micro.lanes}xi32>") for value in sums]


def zero_point_factor(writer: KernelWriter, plan: Plan) -> str:
    """``-(zero_point + offset)`` in all lanes; the zero point is the model's, kernels that differ in it are one."""
    text, micro = writer.text, plan.micro
    kind = f"vector<{micro.lanes}xi32>"
    offset = text.constant(-micro.offset, kind)
    if not plan.packed.zero_point:
        return offset
    scalar = writer.number(-plan.packed.zero_point, "i32")
    return text.hoisted(f"arith.addi {writer.splat(scalar, 'i32', micro.lanes)}, {offset} : {kind}")


def vector_place(writer: KernelWriter, plan: Plan, first: str, vector: int) -> str:
    """Where the packed weights of a vector of channels begin."""
    text, micro = writer.text, plan.micro
    block_bytes = plan.packed.words * BLOCK * WORD
    number = text.op(f"arith.addi {first}, {text.constant(vector, 'i32')} : i32") if vector else first
    per_block = BLOCK // micro.lanes
    if per_block == 1:
        return text.pointer(writer.arguments["packed weights"], [(number, block_bytes)])
    divisor = text.constant(per_block, "i32")
    block = text.op(f"arith.divui {number}, {divisor} : i32")
    inside = text.op(f"arith.remui {number}, {divisor} : i32")
    return text.pointer(writer.arguments["packed weights"], [(block, block_bytes), (inside, micro.lanes * WORD)])


def activation_row(writer: KernelWriter, plan: Plan, indices: list[str], row: int) -> str:
    """Where the activations of one pixel of the tile begin."""
    access = plan.part.activation
    pixels = len(plan.part.extents)
    terms = list(zip(indices, access.strides[:pixels], strict=True))
    offset = access.offset + row * access.strides[pixels - 1]
    return writer.text.pointer(writer.arguments[access.buffer], terms, offset)


def tap_loops(plan: Plan) -> list[tuple[int, int]]:
    """(iterations, bytes of activation between them) of the reduction, the last over words; neighbours merged."""
    strides = plan.part.activation.strides[len(plan.part.extents) :]
    merged: list[tuple[int, int]] = []
    for extent, stride in zip(plan.part.taps, strides, strict=True):
        if merged and merged[-1][1] == extent * stride:
            merged[-1] = (merged[-1][0] * extent, stride)
        elif extent > 1 or stride == 1:
            merged.append((extent, stride))
    extent, _ = merged.pop()
    return [*merged, (extent // WORD, WORD)]


def write_taps(writer: KernelWriter, plan: Plan, places: list[str], rows: list[str], sums: list[str]) -> list[str]:
    """The reduction loops; weights are read in order."""
    loops = tap_loops(plan)
    weight_strides = [stride * BLOCK * WORD for stride in dense_strides(tuple(extent for extent, _ in loops))]
    steps = [(extent, stride, weight) for (extent, stride), weight in zip(loops, weight_strides, strict=True)]
    steps = [*steps[:-1], *unrolled(steps[-1])]
    return write_tap_loop(writer, plan, steps, (places, rows), sums)


WORDS_AT_ONCE = 2


def unrolled(step: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    """The loop over words as one of fewer iterations around one that is written out."""
    extent, activation_bytes, weight_bytes = step
    inner = max(count for count in range(1, WORDS_AT_ONCE + 1) if extent % count == 0)
    return [(extent // inner, activation_bytes * inner, weight_bytes * inner), (inner, activation_bytes, weight_bytes)]


def write_tap_loop(
    writer: KernelWriter,
    plan: Plan,
    steps: list[tuple[int, int, int]],
    pointers: tuple[list[str], list[str]],
    sums: list[str],
) -> list[str]:
    text, micro = writer.text, plan.micro
    (extent, activation_bytes, weight_bytes), *rest = steps
    if not rest:
        for word in range(extent):
            places = [text.pointer(place, [], word * weight_bytes) for place in pointers[0]]
            rows = [text.pointer(row, [], word * activation_bytes) for row in pointers[1]]
            sums = write_products(writer, plan, (places, rows), sums)
        return sums
    with text.loop(extent, [(value, micro.accumulator) for value in sums]) as loop:
        places = [text.pointer(place, [(loop.index, weight_bytes)]) for place in pointers[0]]
        rows = [text.pointer(row, [(loop.index, activation_bytes)]) for row in pointers[1]]
        loop.yields = write_tap_loop(writer, plan, rest, (places, rows), loop.carried)
    return loop.results


def write_products(
    writer: KernelWriter, plan: Plan, pointers: tuple[list[str], list[str]], sums: list[str]
) -> list[str]:
    """One word of every row against one word of every vector, against ones where there are no vectors."""
    text, micro = writer.text, plan.micro
    buffer = writer.buffers[plan.part.activation.buffer]
    alignment = min(WORD, writer.alignment(replace(plan.part.activation, strides=(WORD,)), None))
    weights = [micro.weights(text, place) for place in pointers[0]] or [micro.ones(text)]
    results = []
    for row, pointer in enumerate(pointers[1]):
        word = text.load(pointer, "i32", alignment)
        if buffer.form is Form.RAW:
            word = text.op(f"arith.xori {word}, {text.constant(-0x7F7F7F80, 'i32')} : i32")
        activation = micro.activation(text, word)
        for v, weight in enumerate(weights):
            results.append(micro.dot4(text, sums[row * len(weights) + v], activation, weight))
    return results


def write_finish(writer: KernelWriter, plan: Plan, indices: list[str]) -> None:
    """The finish of the tile's pixels, over as many channels at once as a vector holds."""
    part, tile = plan.part, plan.tile
    lanes = finish_lanes(writer, part)
    scratch = Buffer(SCRATCH, (tile.rows, plan.width), "i32")
    writer.buffers = {**writer.buffers, SCRATCH: scratch}
    with writer.loops([tile.rows, lanes.count]) as (row, chunk):
        channel = writer.chunk_start(lanes, chunk)
        pixel = writer.text.op(f"arith.addi {indices[-1]}, {row} overflow<nsw> : i32")
        value = writer.load(Access(SCRATCH, (plan.width, 1)), [row, channel], lanes)
        place = [*indices[:-1], pixel, channel]
        result = write_stage(writer, part.finish, [value], place, lanes)
        writer.store(result, part.write, place, lanes)


def finish_lanes(writer: KernelWriter, part: Contraction) -> Lanes:
    """How a row of channels is cut: by the narrowest tensor walked, the sums being the widest."""
    walked = [part.write, *(access for access in part.finish.reads if access.strides[-1])]
    if any(access.strides[-1] != 1 for access in walked):
        return Lanes(part.channels, 0)
    narrowest = min(ELEMENT_BYTES[writer.buffers[access.buffer].element] for access in walked)
    size = writer.style.vector_bytes // narrowest
    dense = part.write.strides == dense_strides(part.result_extents) and not part.write.offset
    whole = dense and writer.fills(part.write.buffer, part.result_extents)
    if part.channels >= size or (writer.style.overrun and whole):
        return Lanes(part.channels, size)
    return short_lanes(part.channels)
