"""TOSA's rescaling product, ``(value * multiplier + (1 << (shift - 1))) >> shift``, over vectors of lanes."""

from __future__ import annotations

from dataclasses import dataclass

from hexqdq.compile.kernels.text import Text, vector

REGISTER_LANES = 32
"""Words of an HVX register."""
HALF_BITS = 16
WORD_BITS = 32
NARROW = 1 << 15
"""Multipliers below this one are 16-bit numbers to a vector unit of either sign."""


@dataclass(frozen=True)
class Factor:
    """Multiplier and shift as values, and what is known about them; ``shift_number`` None is computed."""

    multiplier: str
    multiplier_type: str
    is_narrow: bool
    shift: str
    shift_type: str
    shift_number: int | None


def write_rescale(text: Text, value: str, kind: str, factor: Factor, result: str, lanes: int, arch: str) -> str:
    """The product of ``value``, of element type ``kind``, as element type ``result``."""
    words = kind == factor.multiplier_type == result == "i32" and lanes and lanes % REGISTER_LANES == 0
    rest = (factor.shift_number or 0) - HALF_BITS
    if arch == "hexagon" and words and factor.is_narrow and 0 < rest < WORD_BITS:
        return narrow_hexagon(text, value, factor, rest, lanes)
    return in_64_bits(text, value, kind, factor, result, lanes)


def narrow_hexagon(text: Text, value: str, factor: Factor, rest: int, lanes: int) -> str:
    """A 16-bit multiplier: vmpye floors ``value * multiplier / 2**16``, which one rounding shift follows, exactly."""
    kind = vector("i32", lanes)
    upper = by_registers(text, "llvm.hexagon.V6.vmpyewuh.128B", value, factor.multiplier, lanes)
    rounded = text.op(f"arith.addi {upper}, {text.constant(1 << (rest - 1), kind)} : {kind}")
    return text.op(f"arith.shrsi {rounded}, {text.constant(rest, kind)} : {kind}")


def by_registers(text: Text, intrinsic: str, left: str, right: str, lanes: int) -> str:
    """An intrinsic of two registers over every register of two longer vectors."""
    kind, whole = vector("i32", REGISTER_LANES), vector("i32", lanes)
    joined = ""
    for first in range(0, lanes, REGISTER_LANES):
        order = list(range(first, first + REGISTER_LANES))
        parts = [text.op(f"vector.shuffle {side}, {side} {order} : {whole}, {whole}") for side in (left, right)]
        part = text.op(f'llvm.call_intrinsic "{intrinsic}"({parts[0]}, {parts[1]}) : ({kind}, {kind}) -> {kind}')
        if first:
            kinds = f"{vector('i32', first)}, {kind}"
            part = text.op(f"vector.shuffle {joined}, {part} {list(range(first + REGISTER_LANES))} : {kinds}")
        joined = part
    return joined


def in_64_bits(text: Text, value: str, kind: str, factor: Factor, result: str, lanes: int) -> str:
    """The definition, word for word."""
    wide = vector("i64", lanes)
    left = widened(text, value, kind, lanes)
    right = widened(text, factor.multiplier, factor.multiplier_type, lanes)
    if factor.shift_number is not None:
        half = text.constant(1 << (factor.shift_number - 1), wide)
        amount = text.constant(factor.shift_number, wide)
    else:
        amount = widened(text, factor.shift, factor.shift_type, lanes)
        one = text.constant(1, wide)
        less = text.op(f"arith.subi {amount}, {one} : {wide}")
        half = text.op(f"arith.shli {one}, {less} : {wide}")
    product = text.op(f"arith.muli {left}, {right} : {wide}")
    rounded = text.op(f"arith.addi {product}, {half} : {wide}")
    shifted = text.op(f"arith.shrsi {rounded}, {amount} : {wide}")
    return text.op(f"arith.trunci {shifted} : {wide} to {vector(result, lanes)}")


def widened(text: Text, value: str, element: str, lanes: int) -> str:
    """A value as 64 bits."""
    if element == "i64":
        return value
    return text.op(f"arith.extsi {value} : {vector(element, lanes)} to {vector('i64', lanes)}")
