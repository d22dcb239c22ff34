"""A histogram in fixed memory whose bins widen by powers of two, and the observers that keep one."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq.quantize.observers.base import NARROW_LEVELS, Knobs, Observer, Range, empty, finite, unlike

Counts = NDArray[np.int64]
Reals = NDArray[np.float64]

_CHUNK = 1 << 16
_FINEST = -1000
_FARTHEST = 62
_EXACT_32 = 126
_DIGITS = 40
"""Bins are at least the largest magnitude / 2**_DIGITS wide, so a bin's number has so many bits at most."""


class Histogram:
    """Counts of values in at most ``bins`` bins of width 2**exponent that start at multiples of it.

    The exponent is the smallest at which [low, high] fits, so it depends on the extremes alone, and
    widening joins whole bins: the counts are exactly those of one pass over all values with the last
    width, in any order and any split. ``zeros`` counts exact zeros, which lie in the bin from 0 too.
    """

    def __init__(self, bins: int) -> None:
        self.bins, self.total, self.zeros = bins, 0, 0
        self.low, self.high = math.inf, -math.inf
        self._exponent, self._first = _FINEST, 0
        self._counts: Counts = np.zeros(bins, np.int64)

    def add(self, values: NDArray[Any], bounds: Range) -> None:
        """Counts finite values [count] whose smallest and largest are ``bounds``."""
        self._cover(*bounds)
        number = self._number_32 if self._fits_32(values) else self._number_64
        for start in range(0, values.size, _CHUNK):
            piece = values[start : start + _CHUNK]
            found = np.bincount(number(piece))
            self._counts[: found.size] += found
            self.zeros += int(np.count_nonzero(piece == 0))
        self.total += values.size

    def _fits_32(self, values: NDArray[Any]) -> bool:
        """Whether float32 tells the bin of each value exactly: scaling up by a power of two loses nothing."""
        farthest = max(abs(self._first), abs(self._first + self.bins))
        return values.dtype == np.float32 and farthest <= 1 << 24 and -_EXACT_32 <= self._exponent <= 0

    def _number_32(self, piece: NDArray[Any]) -> NDArray[np.int32]:
        scaled = piece * np.float32(math.ldexp(1.0, -self._exponent))
        number: NDArray[np.int32] = np.floor(scaled, out=scaled).astype(np.int32)
        number -= self._first
        return number

    def _number_64(self, piece: NDArray[Any]) -> NDArray[np.intp]:
        scaled = np.multiply(piece, math.ldexp(1.0, -self._exponent), dtype=np.float64)
        np.floor(scaled, out=scaled)
        scaled -= self._first
        return scaled.astype(np.intp)

    def merge(self, other: Histogram) -> None:
        """Counts what another histogram of as many bins holds."""
        if not other.total:
            return
        self._cover(other.low, other.high)
        self._counts += other._widened(self._exponent, self._first)
        self.total += other.total
        self.zeros += other.zeros

    def counts(self) -> Counts:
        """Per bin from that of ``low`` to that of ``high``."""
        return self._counts[: _index(self.high, self._exponent) - self._first + 1]

    def edges(self) -> Reals:
        """The bounds of ``counts``'s bins [bins + 1]."""
        return np.ldexp(self._first + np.arange(self.counts().size + 1, dtype=np.float64), self._exponent)

    def _cover(self, low: float, high: float) -> None:
        self.low, self.high = min(self.low, low), max(self.high, high)
        exponent = _exponent(self.low, self.high, self.bins)
        first = _index(self.low, exponent)
        if (exponent, first) != (self._exponent, self._first):
            self._counts = self._widened(exponent, first)
            self._exponent, self._first = exponent, first

    def _widened(self, exponent: int, first: int) -> Counts:
        """The counts in wider bins of which the first is number ``first``."""
        widened: Counts = np.zeros(self.bins, np.int64)
        used = np.flatnonzero(self._counts)
        joined = 2 ** min(exponent - self._exponent, _FARTHEST)
        np.add.at(widened, (self._first + used) // joined - first, self._counts[used])
        return widened


def _index(value: float, exponent: int) -> int:
    return math.floor(math.ldexp(value, -exponent))


def _exponent(low: float, high: float, bins: int) -> int:
    """The smallest exponent of a bin width at which [low, high] fits into ``bins`` bins."""
    magnitude = math.frexp(max(abs(low), abs(high)))[1]
    exponent = max(magnitude - _DIGITS, _FINEST) if low or high else _FINEST
    if high > low:
        exponent = max(exponent, math.frexp((high - low) / bins)[1] - 2)
    while _index(high, exponent) - _index(low, exponent) >= bins:
        exponent += 1
    return exponent


class HistogramObserver(ABC):
    """Keeps a histogram; a method chooses the range from it."""

    method = ""

    def __init__(self, knobs: Knobs = Knobs()) -> None:  # noqa: B008 - frozen
        self.knobs = knobs
        self.histogram = Histogram(knobs.histogram_bins)

    def update(self, values: NDArray[Any], bounds: Range | None = None) -> None:
        if (kept := finite(values, bounds)) is not None:
            self.histogram.add(*kept)

    def merge(self, other: Observer) -> None:
        if not isinstance(other, type(self)) or other.knobs != self.knobs:
            raise unlike(self.method, other)
        self.histogram.merge(other.histogram)

    def range(self, levels: int = NARROW_LEVELS) -> Range:
        seen = self.histogram
        if not seen.total:
            raise empty(self.method)
        low, high = self.choose(seen, levels)
        return max(low, seen.low), min(high, seen.high)

    @abstractmethod
    def choose(self, seen: Histogram, levels: int) -> Range:
        """The range for a type of so many levels; it may reach past the values seen."""


def shrunk(bound: float, count: int, per_octave: int = 8) -> Reals:
    """``bound`` and ``count`` - 1 values towards 0 in equal ratios; only 0 where it is 0."""
    return bound * np.exp2(-np.arange(count) / per_octave) if bound else np.zeros(1)
