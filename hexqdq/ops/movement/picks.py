"""Movements that choose, along each axis, which elements go where: Slice, Pad, nearest Resize."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq.ops.unit import QuantUnit

Array = NDArray[Any]
Indices = NDArray[np.int64]
Picks = tuple[Indices, ...]
"""Per axis of the input the index of every element of the output."""


def all_of(size: int) -> Indices:
    """Every index of an axis."""
    return np.arange(size, dtype=np.int64)


def picked(values: Array, picks: Picks) -> Array:
    """The chosen elements."""
    return np.ascontiguousarray(values[np.ix_(*picks)]) if picks else values


def numbers(unit: QuantUnit, index: int) -> tuple[int, ...] | None:
    """A constant input of integers, None where it is absent."""
    if not unit.has_input(index):
        return None
    return tuple(int(number) for number in unit.constant(index).reshape(-1))


def axes_of(given: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """Axes as non-negative indices, all of them where none are given."""
    return tuple(range(rank)) if given is None else tuple(axis % rank for axis in given)
