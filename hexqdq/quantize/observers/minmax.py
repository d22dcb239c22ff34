"""Min-max: the smallest and the largest value seen."""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import NDArray

from hexqdq.errors import CalibrationError
from hexqdq.quantize.observers.base import Observer, Range, empty


class MinMax:
    """The range [smallest, largest] of everything seen; exact, and blind to how often values occur."""

    def __init__(self) -> None:
        self._low, self._high = math.inf, -math.inf

    def update(self, values: NDArray[Any]) -> None:
        if values.size:
            self._low = min(self._low, float(values.min()))
            self._high = max(self._high, float(values.max()))

    def merge(self, other: Observer) -> None:
        if not isinstance(other, MinMax):
            raise CalibrationError("minmax observer", f"cannot take in a {type(other).__name__}", "merge equal methods")
        self._low, self._high = min(self._low, other._low), max(self._high, other._high)

    def range(self) -> Range:
        if self._low > self._high:
            raise empty("minmax")
        return self._low, self._high
