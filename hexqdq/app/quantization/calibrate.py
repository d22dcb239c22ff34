"""Calibration data as onnxruntime.quantization reads them, and its methods."""

from __future__ import annotations

import abc
from collections.abc import Iterator
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq.errors import CalibrationError

Feed = dict[str, NDArray[Any]]


class CalibrationMethod(Enum):
    """How a range comes from what was seen."""

    MinMax = 0
    Entropy = 1
    Percentile = 2
    Distribution = 3


class CalibrationDataReader(abc.ABC):
    """Gives samples one after another; a class with ``get_next`` is one without inheriting."""

    @classmethod
    def __subclasshook__(cls, subclass: type) -> Any:
        return callable(getattr(subclass, "get_next", None)) or NotImplemented

    @abc.abstractmethod
    def get_next(self) -> dict[str, Any] | None:
        """The next sample, arrays by input name; None where there is no more."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self

    def __next__(self) -> dict[str, Any]:
        sample = self.get_next()
        if sample is None:
            raise StopIteration
        return sample


class Feeds:
    """The samples of a reader, read once; ``shapes`` are those of the first."""

    def __init__(self, reader: Any) -> None:
        if not callable(getattr(reader, "get_next", None)):
            found = f"is a {type(reader).__name__} without get_next"
            raise CalibrationError("calibration_data_reader", found, "derive it from CalibrationDataReader")
        self._reader = reader
        self._first = self._next()

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """By input name; none where the reader has no sample."""
        return {name: values.shape for name, values in (self._first or {}).items()}

    def __iter__(self) -> Iterator[Feed]:
        sample, self._first = self._first, None
        while sample:
            yield sample
            sample = self._next()

    def _next(self) -> Feed | None:
        sample = self._reader.get_next()
        return None if sample is None else {str(name): np.asarray(values) for name, values in sample.items()}
