"""Where an output element of Resize lies on its input's axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Axis:
    """One axis of a Resize: elements in and out, and the float32 scale as given or as the sizes say."""

    before: int
    after: int
    scale: float
    exact: Fraction

    @classmethod
    def of_scale(cls, before: int, after: int, scale: float) -> Axis:
        """An axis whose scale the model gives; a float32 within one part in 2**20 of after / before stands for it."""
        ratio = Fraction(after, before)
        near = abs(Fraction(scale) - ratio) <= ratio / 2**20
        return cls(before, after, scale, ratio if near else Fraction(scale))

    @classmethod
    def of_size(cls, before: int, after: int) -> Axis:
        """An axis whose output size the model gives."""
        return cls(before, after, float(np.float32(after) / np.float32(before)), Fraction(after, before))

    @property
    def is_whole(self) -> bool:
        """Whether nothing is resized, whatever the mode: the runtime skips such axes."""
        return self.before == self.after and self.scale == 1.0


def _symmetric(axis: Axis, x: Fraction) -> Fraction:
    adjustment = Fraction(axis.after) / (axis.exact * axis.before)
    return Fraction(axis.before, 2) * (1 - adjustment) + (x + Fraction(1, 2)) / axis.exact - Fraction(1, 2)


_HALF = Fraction(1, 2)
EXACT: Mapping[str, Callable[[Axis, Fraction], Fraction]] = {
    "half_pixel": lambda axis, x: (x + _HALF) / axis.exact - _HALF,
    "half_pixel_symmetric": _symmetric,
    "pytorch_half_pixel": lambda axis, x: (x + _HALF) / axis.exact - _HALF if axis.after > 1 else Fraction(0),
    "align_corners": lambda axis, x: x * Fraction(axis.before - 1, axis.after - 1) if axis.after > 1 else Fraction(0),
    "asymmetric": lambda axis, x: x / axis.exact,
    "tf_half_pixel_for_nn": lambda axis, x: (x + _HALF) / axis.exact,
}
"""ONNX's coordinate transformations of an output position, without rounding."""


def exact_positions(axis: Axis, transformation: str) -> list[Fraction]:
    """The real position on the input of every output element."""
    place = EXACT[transformation]
    return [place(axis, Fraction(index)) for index in range(axis.after)]


def float_positions(axis: Axis, transformation: str) -> NDArray[np.float32]:
    """The same in onnxruntime's float32 arithmetic and order, which decides near the borders of elements."""
    x, half, scale = np.arange(axis.after, dtype=np.float32), np.float32(0.5), np.float32(axis.scale)
    if transformation == "asymmetric":
        return x / scale
    if transformation == "align_corners":
        steps = np.float32(max(axis.after - 1, 1))
        return x * np.float32(axis.before - 1) / steps if axis.after > 1 else x * 0
    if transformation == "tf_half_pixel_for_nn":
        return (x + half) / scale
    if transformation == "pytorch_half_pixel" and axis.after == 1:
        return x * 0
    if transformation == "half_pixel_symmetric":
        adjustment = np.float32(axis.after) / (scale * np.float32(axis.before))
        offset = np.float32(axis.before) / np.float32(2) * (np.float32(1) - adjustment)
        wide = np.float64(offset) + (x.astype(np.float64) + 0.5) / np.float64(scale) - 0.5
        return wide.astype(np.float32)
    return (x + half) / scale - half


TIE = 1e-6
"""Positions this near to the middle between two elements count as a tie."""


def _round(x: float, up: bool) -> int:
    """The nearest element, of two equally near ones the upper where ``up``."""
    whole = math.floor(x)
    distance = x - whole - 0.5
    return whole + (up if abs(distance) < TIE else distance > 0)


NEAREST: Mapping[str, Callable[[float], int]] = {
    "round_prefer_floor": lambda x: _round(x, False),
    "round_prefer_ceil": lambda x: _round(x, True),
    "floor": math.floor,
    "ceil": math.ceil,
}
"""ONNX's ways from a real position to an element."""


def nearest(axis: Axis, transformation: str, mode: str) -> Indices:
    """The element of the input that every output element copies."""
    if axis.is_whole:
        return np.arange(axis.before, dtype=np.int64)
    chosen = [NEAREST[mode](float(x)) for x in float_positions(axis, transformation)]
    return np.array([min(max(index, 0), axis.before - 1) for index in chosen], np.int64)
