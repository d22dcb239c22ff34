"""Calibration samples that are read more than once."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Sample = Mapping[str, NDArray[Any]]


@contextmanager
def replayable(samples: Iterable[Sample]) -> Iterator[Iterable[Sample]]:
    """The samples, to be iterated any number of times.

    What has a length is iterated again; a stream is written to a temporary folder while it is first
    read, so that memory holds one sample.
    """
    if isinstance(samples, Sized):
        yield samples
        return
    with tempfile.TemporaryDirectory(prefix="hexqdq-samples-") as folder:
        yield _Recorded(samples, Path(folder))


class _Recorded:
    """Yields a stream the first time, what was recorded of it later."""

    def __init__(self, samples: Iterable[Sample], folder: Path) -> None:
        self._samples, self._folder = samples, folder
        self._names: list[tuple[str, ...]] = []
        self._complete = False

    def __iter__(self) -> Iterator[Sample]:
        if self._complete:
            yield from (self._read(index) for index in range(len(self._names)))
            return
        for sample in self._samples:
            self._write(sample)
            yield sample
            del sample
        self._complete = True

    def _write(self, sample: Sample) -> None:
        np.savez(self._file(len(self._names)), *sample.values())
        self._names.append(tuple(sample))

    def _read(self, index: int) -> Sample:
        with np.load(self._file(index)) as arrays:
            return {name: arrays[f"arr_{place}"] for place, name in enumerate(self._names[index])}

    def _file(self, index: int) -> Path:
        return self._folder / f"{index}.npz"
