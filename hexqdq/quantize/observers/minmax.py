"""Min-max: the smallest and the largest value seen."""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import NDArray

from hexqdq.quantize.observers.base import NARROW_LEVELS, Knobs, Observer, Range, empty, finite, unlike


class MinMax:
    """The range [smallest, largest] of everything seen; exact, and blind to how often values occur."""

    def __init__(self, knobs: Knobs = Knobs()) -> None:  # noqa: B008 - frozen
        self._low, self._high = math.inf, -math.inf

    def update(self, values: NDArray[Any], bounds: Range | None = None) -> None:
        if (kept := finite(values, bounds)) is not None:
            _, (low, high) = kept
            self._low, self._high = min(self._low, low), max(self._high, high)

    def merge(self, other: Observer) -> None:
        if not isinstance(other, MinMax):
            raise unlike("minmax", other)
        self._low, self._high = min(self._low, other._low), max(self._high, other._high)

    def range(self, levels: int = NARROW_LEVELS) -> Range:
        if self._low > self._high:
            raise empty("minmax")
        return self._low, self._high
