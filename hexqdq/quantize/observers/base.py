"""What calibration asks of an observer, and the knobs of all methods."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hexqdq.errors import CalibrationError

Array = NDArray[Any]
Range = tuple[float, float]

NARROW_LEVELS, WIDE_LEVELS = 1 << 8, 1 << 16
"""Of the element types of 8 bits and of 16."""


@dataclass(frozen=True)
class Knobs:
    """What methods can be told; each reads its own.

    ``percentile``: the share of values in percent that the range keeps, the rest is cut on both sides
    alike. ``mse_power``: the power of the error that mse sums. ``histogram_bins``: per tensor.
    """

    percentile: float = 99.99
    mse_power: float = 2.0
    histogram_bins: int = 8192


class Observer(Protocol):
    """Sees a tensor's values sample by sample and keeps what it needs for a range, not the values.

    Neither the order of the samples nor a split into merged observers changes the range by a bit.
    """

    def __init__(self, knobs: Knobs = ...) -> None: ...

    def update(self, values: Array, bounds: Range | None = None) -> None:
        """Takes the values of one sample; what is not finite is left out, an empty array changes nothing.

        ``bounds`` are the smallest and the largest value where they are known, and then finite.
        """

    def merge(self, other: Observer) -> None:
        """Takes what another observer of the same method and knobs has seen."""

    def range(self, levels: int = NARROW_LEVELS) -> Range:
        """(low, high) for an element type of so many levels, inside the values seen.

        Raises CalibrationError where there was none.
        """


def finite(values: Array, bounds: Range | None) -> tuple[Array, Range] | None:
    """The finite values [count], their smallest and their largest; None where there are none."""
    flat: Array = values.reshape(-1)
    if not flat.size:
        return None
    low, high = bounds or (float(flat.min()), float(flat.max()))
    if math.isfinite(low) and math.isfinite(high):
        return flat, (low + 0.0, high + 0.0)  # no zero with a sign
    return finite(flat[np.isfinite(flat)], None)


def empty(method: str) -> CalibrationError:
    """The error of an observer that saw nothing."""
    return CalibrationError(f"{method} observer", "saw no values", "calibrate with a sample that is not empty")


def unlike(method: str, other: object) -> CalibrationError:
    """The error of an observer that is to take in one of another method or other knobs."""
    return CalibrationError(f"{method} observer", f"cannot take in a {type(other).__name__}", "merge equal observers")
