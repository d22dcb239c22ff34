"""Moving average: the mean of the samples' smallest and the mean of their largest values."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from hexqdq.quantize.observers.base import NARROW_LEVELS, Knobs, Observer, Range, empty, finite, unlike


class MovingAverage:
    """The range [mean of minima, mean of maxima], every sample weighing the same.

    A cumulative average with exact sums: an exponential one would weigh the last samples most and so
    depend on their order. Cuts what only few samples reach; wrong where those matter.
    """

    def __init__(self, knobs: Knobs = Knobs()) -> None:  # noqa: B008 - frozen
        self._count, self._low, self._high = 0, Fraction(), Fraction()

    def update(self, values: NDArray[Any], bounds: Range | None = None) -> None:
        if (kept := finite(values, bounds)) is not None:
            _, (low, high) = kept
            self._count += 1
            self._low += Fraction(low)
            self._high += Fraction(high)

    def merge(self, other: Observer) -> None:
        if not isinstance(other, MovingAverage):
            raise unlike("average", other)
        self._count += other._count
        self._low += other._low
        self._high += other._high

    def range(self, levels: int = NARROW_LEVELS) -> Range:
        if not self._count:
            raise empty("average")
        return float(self._low / self._count), float(self._high / self._count)
