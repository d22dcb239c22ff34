"""Linear Resize in exact arithmetic: whether an element lies midway between two integers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from hexqdq.ops.unit import QuantUnit

Array = NDArray[Any]
Taps = tuple[tuple[int, Fraction], tuple[int, Fraction]]


def is_linear_resize(unit: QuantUnit) -> bool:
    return unit.op_type == "Resize" and unit.attributes.get("mode") == "linear"


def source_taps(mode: object, position: int, before: int, after: int) -> Taps:
    """The two elements that an output position lies between, with their weights (ONNX Resize)."""
    if mode == "align_corners":
        place = Fraction(position * (before - 1), max(after - 1, 1))
    elif mode == "asymmetric":
        place = Fraction(position * before, after)
    else:
        assert mode == "half_pixel", mode
        place = Fraction((2 * position + 1) * before, 2 * after) - Fraction(1, 2)
    place = min(max(place, Fraction(0)), Fraction(before - 1))
    first = int(place)
    return (first, 1 - (place - first)), (min(first + 1, before - 1), place - first)


def exact_step(unit: QuantUnit, source: Array, place: tuple[int, int, int, int]) -> Fraction:
    """The real value of an output element of NCHW data, in steps of the output."""
    x, y = unit.input(0), unit.output
    assert x.params is not None and y.params is not None
    mode = unit.attributes["coordinate_transformation_mode"]
    image, channel, row, column = place
    rows = source_taps(mode, row, x.shape[2], y.shape[2])
    columns = source_taps(mode, column, x.shape[3], y.shape[3])
    total = sum(
        ((int(source[image, channel, i, j]) - x.params.zero_point[0]) * a * b for i, a in rows for j, b in columns),
        Fraction(0),
    )
    return total * Fraction(x.params.scale[0]) / Fraction(y.params.scale[0]) + y.params.zero_point[0]


def is_tie(value: Fraction) -> bool:
    return value - value.__floor__() == Fraction(1, 2)
