"""Tables of 256 bytes read at every lane's own byte."""

from __future__ import annotations

from collections.abc import Callable

from hexqdq.compile.kernels.style import Style
from hexqdq.compile.kernels.text import Text, vector

Whole = Callable[[Text, str, str], str]
"""Writes the lookup of a whole register: from the table's pointer and unsigned bytes."""


def write_lookup(text: Text, table: str, value: str, lanes: int, style: Style) -> str:
    """``table[value + 128]`` in every lane of i8; ``lanes`` 0 is a scalar."""
    kind = vector("i8", lanes)
    index = text.op(f"arith.xori {value}, {text.constant(-128, kind)} : {kind}")
    if not lanes:
        return one_byte(text, table, index)
    if style.arch == "hexagon":
        return by_registers(text, table, index, lanes, 128, hexagon)
    if style.arch == "x86_64" and style.vector_bytes >= 32:
        return by_registers(text, table, index, lanes, 32, avx2)
    return lane_by_lane(text, table, index, lanes)


def one_byte(text: Text, table: str, index: str) -> str:
    wide = text.op(f"arith.extui {index} : i8 to i32")
    return text.load(text.pointer(table, [(wide, 1)]), "i8", 1)


def lane_by_lane(text: Text, table: str, index: str, lanes: int) -> str:
    """A load per lane."""
    kind = vector("i8", lanes)
    result = text.constant(0, kind)
    for lane in range(lanes):
        byte = one_byte(text, table, text.op(f"vector.extract {index}[{lane}] : i8 from {kind}"))
        result = text.op(f"vector.insert {byte}, {result}[{lane}] : i8 into {kind}")
    return result


def by_registers(text: Text, table: str, index: str, lanes: int, size: int, whole: Whole) -> str:
    """Registers of ``size`` lanes one after the other; a part of one is filled up with its first lane."""
    if lanes == size:
        return whole(text, table, index)
    kind = vector("i8", lanes)
    parts = []
    for first in range(0, lanes, size):
        order = [lane if lane < lanes else first for lane in range(first, first + size)]
        filled = text.op(f"vector.shuffle {index}, {index} {order} : {kind}, {kind}")
        parts.append(whole(text, table, filled))
    joined = parts[0]
    for number, part in enumerate(parts[1:], 1):
        kinds = f"{vector('i8', number * size)}, {vector('i8', size)}"
        joined = text.op(f"vector.shuffle {joined}, {part} {list(range((number + 1) * size))} : {kinds}")
    total = vector("i8", len(parts) * size)
    return text.op(f"vector.shuffle {joined}, {joined} {list(range(lanes))} : {total}, {total}")


def hexagon(text: Text, table: str, index: str) -> str:
    """Eight vlut32: each answers the bytes of one eighth of the range and gives 0 for the others.

    The instruction reads a register of 64 pairs: entries 0..63 in the low bytes, 64..127 in the high ones.
    """
    words, half = "vector<32xi32>", 128
    halves = []
    for offset in (0, half):
        place = table
        if offset:
            place = text.hoisted(f"llvm.getelementptr {table}[{offset}] : (!llvm.ptr) -> !llvm.ptr, i8")
        loaded = text.hoisted(f"llvm.load {place} {{alignment = 128 : i64}} : !llvm.ptr -> {words}")
        shuffled = f'llvm.call_intrinsic "llvm.hexagon.V6.vshuffb.128B"({loaded}) : ({words}) -> {words}'
        halves.append(text.hoisted(shuffled))
    lanes = text.op(f"llvm.bitcast {index} : vector<128xi8> to {words}")
    result = text.op(
        f'llvm.call_intrinsic "llvm.hexagon.V6.vlutvvbi.128B"({lanes}, {halves[0]}, {text.constant(0, "i32")}) : '
        f"({words}, {words}, i32) -> {words}"
    )
    for part in range(1, 8):
        operands = f"{result}, {lanes}, {halves[part // 4]}, {text.constant(part, 'i32')}"
        result = text.op(
            f'llvm.call_intrinsic "llvm.hexagon.V6.vlutvvb.oracci.128B"({operands}) : '
            f"({words}, {words}, {words}, i32) -> {words}"
        )
    return text.op(f"llvm.bitcast {result} : {words} to vector<128xi8>")


def avx2(text: Text, table: str, index: str) -> str:
    """Sixteen pshufb: less 16 times its number, a byte of another row saturates to one that gives 0."""
    kind = "vector<32xi8>"
    result = text.constant(0, kind)
    repeated = [lane % 16 for lane in range(32)]
    for row in range(16):
        place = text.hoisted(f"llvm.getelementptr {table}[{16 * row}] : (!llvm.ptr) -> !llvm.ptr, i8")
        entries = text.hoisted(f"llvm.load {place} {{alignment = 16 : i64}} : !llvm.ptr -> vector<16xi8>")
        both = text.hoisted(f"vector.shuffle {entries}, {entries} {repeated} : vector<16xi8>, vector<16xi8>")
        own = text.op(f"arith.subi {index}, {text.constant(signed(16 * row), kind)} : {kind}")
        place_in_row = text.op(f'"llvm.intr.uadd.sat"({own}, {text.constant(0x70, kind)}) : ({kind}, {kind}) -> {kind}')
        found = text.op(
            f'llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"({both}, {place_in_row}) : ({kind}, {kind}) -> {kind}'
        )
        result = text.op(f"arith.ori {result}, {found} : {kind}")
    return result


def signed(byte: int) -> int:
    """An unsigned byte as i8 writes it."""
    return byte - 256 if byte > 127 else byte
