"""Micro-kernels: the innermost dot products of contractions, one interface for every instruction set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hexqdq.compile.kernels.style import Style
from hexqdq.compile.kernels.text import Text, vector


@dataclass(frozen=True)
class Tile:
    """Accumulators held in registers: ``rows`` pixels times ``vectors`` of channels."""

    rows: int
    vectors: int


def best_tile(pixels: int, vectors: int, largest: Tile, accumulators: int) -> Tile:
    """The tile with the least work: products of all tiles, surplus ones too, plus loads and a fixed share per step."""

    def work(tile: Tile) -> float:
        tiles = -(-pixels // tile.rows) * -(-vectors // tile.vectors)
        return tiles * (tile.rows * tile.vectors + (tile.rows + tile.vectors) / 2 + 1)

    fitting = [
        Tile(rows, across)
        for rows in range(1, min(largest.rows, pixels) + 1)
        for across in range(1, min(largest.vectors, vectors) + 1)
        if rows * across <= accumulators
    ]
    return min(fitting, key=work)


class MicroKernel(Protocol):
    """Dot products of four activation bytes with four weights in every lane.

    ``accumulator`` is the type that loops carry; ``begin`` makes one and ``end`` gives its
    ``lanes`` sums as i32, both told where the sums' first values are; ``total`` gives the sums of
    an accumulator that began with zeros. ``dot4`` multiplies by weights plus ``offset``.
    """

    lanes: int
    accumulator: str
    offset: int

    def tile(self, pixels: int, vectors: int) -> Tile: ...

    def begin(self, text: Text, start: str) -> str: ...

    def activation(self, text: Text, word: str) -> str:
        """A word of four unsigned bytes in the form that ``dot4`` takes."""

    def weights(self, text: Text, pointer: str) -> str:
        """The weights of one word of every lane."""

    def ones(self, text: Text) -> str:
        """Weights that ``dot4`` multiplies by one."""

    def dot4(self, text: Text, accumulator: str, activation: str, weights: str) -> str: ...

    def total(self, text: Text, accumulator: str) -> str: ...

    def end(self, text: Text, accumulator: str, start: str) -> str: ...


class Hvx:
    """Hexagon: 32 lanes of vrmpy, unsigned bytes against signed ones, both in vectors: one a packet."""

    lanes = 32
    accumulator = "vector<32xi32>"
    offset = 0

    def tile(self, pixels: int, vectors: int) -> Tile:
        return best_tile(pixels, vectors, Tile(8, 5), accumulators=20)

    def begin(self, text: Text, start: str) -> str:
        return text.load(start, self.accumulator, 128)

    def activation(self, text: Text, word: str) -> str:
        return text.op(f"vector.broadcast {word} : i32 to {self.accumulator}")

    def weights(self, text: Text, pointer: str) -> str:
        return text.load(pointer, self.accumulator, 128)

    def ones(self, text: Text) -> str:
        return text.constant(0x01010101, self.accumulator)

    def dot4(self, text: Text, accumulator: str, activation: str, weights: str) -> str:
        kind = self.accumulator
        return text.op(
            f'llvm.call_intrinsic "llvm.hexagon.V6.vrmpybusv.acc.128B"({accumulator}, {activation}, {weights}) : '
            f"({kind}, {kind}, {kind}) -> {kind}"
        )

    def total(self, text: Text, accumulator: str) -> str:
        return accumulator

    def end(self, text: Text, accumulator: str, start: str) -> str:
        return accumulator


class HvxScalar(Hvx):
    """Hexagon: activations in scalar registers against unsigned weights in vectors: two vrmpy a packet.

    The weights' sign bit is flipped when they are loaded, which adds 128.
    """

    offset = 128

    def activation(self, text: Text, word: str) -> str:
        return word

    def weights(self, text: Text, pointer: str) -> str:
        signed = text.load(pointer, self.accumulator, 128)
        return text.op(f"arith.xori {signed}, {text.constant(-0x7F7F7F80, self.accumulator)} : {self.accumulator}")

    def dot4(self, text: Text, accumulator: str, activation: str, weights: str) -> str:
        kind = self.accumulator
        return text.op(
            f'llvm.call_intrinsic "llvm.hexagon.V6.vrmpyub.acc.128B"({accumulator}, {weights}, {activation}) : '
            f"({kind}, {kind}, i32) -> {kind}"
        )


class Vnni:
    """x86 with AVX512-VNNI: 16 lanes of vpdpbusd, unsigned bytes against signed ones, sums that never saturate."""

    lanes = 16
    accumulator = "vector<16xi32>"
    bytes_ = "vector<64xi8>"
    offset = 0

    def tile(self, pixels: int, vectors: int) -> Tile:
        return best_tile(pixels, vectors, Tile(8, 4), accumulators=24)

    def begin(self, text: Text, start: str) -> str:
        return text.load(start, self.accumulator, 64)

    def activation(self, text: Text, word: str) -> str:
        same = text.op(f"vector.broadcast {word} : i32 to {self.accumulator}")
        return text.op(f"vector.bitcast {same} : {self.accumulator} to {self.bytes_}")

    def weights(self, text: Text, pointer: str) -> str:
        return text.load(pointer, self.bytes_, 64)

    def ones(self, text: Text) -> str:
        return text.constant(1, self.bytes_)

    def dot4(self, text: Text, accumulator: str, activation: str, weights: str) -> str:
        kinds = f"({self.accumulator}, {self.bytes_}, {self.bytes_}) -> {self.accumulator}"
        return text.op(
            f'llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"({accumulator}, {activation}, {weights}) : {kinds}'
        )

    def total(self, text: Text, accumulator: str) -> str:
        return accumulator

    def end(self, text: Text, accumulator: str, start: str) -> str:
        return accumulator


class Pairs:
    """Any host: bytes widened to 16 bits, products added in pairs (pmaddwd on x86), never saturating.

    A lane's accumulator is two partial sums side by side, added once at the end.
    """

    offset = 0

    def __init__(self, lanes: int, registers: int) -> None:
        self.lanes = lanes
        self.accumulator = vector("i32", 2 * lanes)
        self.accumulators = (registers - 4) // 2

    def tile(self, pixels: int, vectors: int) -> Tile:
        return best_tile(pixels, vectors, Tile(4, 2), self.accumulators)

    def begin(self, text: Text, start: str) -> str:
        return text.constant(0, self.accumulator)

    def activation(self, text: Text, word: str) -> str:
        bytes_ = text.op(f"llvm.bitcast {word} : i32 to vector<4xi8>")
        halves = text.op(f"arith.extui {bytes_} : vector<4xi8> to vector<4xi16>")
        order = ", ".join(str(lane % 4) for lane in range(4 * self.lanes))
        spread = text.op(f"vector.shuffle {halves}, {halves} [{order}] : vector<4xi16>, vector<4xi16>")
        return self.wide(text, spread)

    def weights(self, text: Text, pointer: str) -> str:
        count = 4 * self.lanes
        values = text.load(pointer, f"vector<{count}xi8>", count)
        halves = text.op(f"arith.extsi {values} : vector<{count}xi8> to vector<{count}xi16>")
        return self.wide(text, halves)

    def ones(self, text: Text) -> str:
        return text.constant(1, vector("i32", 4 * self.lanes))

    def wide(self, text: Text, halves: str) -> str:
        count = 4 * self.lanes
        return text.op(f"arith.extsi {halves} : vector<{count}xi16> to vector<{count}xi32>")

    def dot4(self, text: Text, accumulator: str, activation: str, weights: str) -> str:
        count = 4 * self.lanes
        products = text.op(f"arith.muli {activation}, {weights} : vector<{count}xi32>")
        pairs = self.added_pairs(text, products, count)
        return text.op(f"arith.addi {accumulator}, {pairs} : {self.accumulator}")

    def total(self, text: Text, accumulator: str) -> str:
        return self.added_pairs(text, accumulator, 2 * self.lanes)

    def end(self, text: Text, accumulator: str, start: str) -> str:
        sums = self.total(text, accumulator)
        kind = vector("i32", self.lanes)
        first = text.load(start, kind, 4 * self.lanes)
        return text.op(f"arith.addi {sums}, {first} : {kind}")

    def added_pairs(self, text: Text, values: str, count: int) -> str:
        """Neighbouring lanes added: half as many."""
        kind = vector("i32", count)
        even, odd = (
            text.op(
                f"vector.shuffle {values}, {values} [{', '.join(map(str, range(first, count, 2)))}] : {kind}, {kind}"
            )
            for first in (0, 1)
        )
        return text.op(f"arith.addi {even}, {odd} : {vector('i32', count // 2)}")


def micro_kernel(style: Style, channels: int, zero_point: int) -> MicroKernel:
    """The best micro-kernel that the style's target has for so many channels and a zero point of the weights.

    Scalar activations on Hexagon need the sum of every pixel's activations, which two vectors of
    channels or more are worth, or which a zero point needs anyway.
    """
    if style.arch == "hexagon":
        return HvxScalar() if zero_point or channels > Hvx.lanes else Hvx()
    return Vnni() if style.has_vnni else Pairs(style.micro_lanes, style.registers)
