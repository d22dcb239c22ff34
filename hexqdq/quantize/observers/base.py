"""What calibration asks of an observer."""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import NDArray

from hexqdq.errors import CalibrationError

Array = NDArray[Any]
Range = tuple[float, float]


class Observer(Protocol):
    """Sees a tensor's values sample by sample and keeps what it needs for a range, not the values.

    Neither the order of the samples nor a split into merged observers changes the range of a
    method that is not defined by order.
    """

    def update(self, values: Array) -> None:
        """Takes the finite values of one sample; an empty array changes nothing."""

    def merge(self, other: Observer) -> None:
        """Takes what another observer of the same method has seen."""

    def range(self) -> Range:
        """(low, high); raises CalibrationError where no value was seen."""


def empty(method: str) -> CalibrationError:
    """The error of an observer that saw nothing."""
    return CalibrationError(f"{method} observer", "saw no values", "calibrate with a sample that is not empty")
