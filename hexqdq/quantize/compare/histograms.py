"""Histograms of tensors in a float model and in its quantized form, over the same bins."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq.import_.product import ImportedModel
from hexqdq.quantize.calibration.calibrate import Progress, Runner, Sample, counted
from hexqdq.quantize.compare.measure import TensorMeasure
from hexqdq.quantize.compare.places import Place, places

BINS = 100

Counts = NDArray[np.int64]
Edges = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Histogram:
    """How many values lie between ``edges`` [bins + 1]: of the float model, and of the quantized one."""

    tensor: str
    edges: Edges
    exact: Counts
    quantized: Counts


def histograms(
    exact: ImportedModel,
    quantized: ImportedModel,
    samples: Iterable[Sample],
    measures: Sequence[TensorMeasure],
    progress: Progress | None = None,
) -> tuple[Histogram, ...]:
    """One histogram per measure that was taken on the same samples; memory holds one sample's tensors."""
    wanted = {entry.tensor: entry for entry in measures}
    chosen = [place for place in places(exact, quantized) if place.name in wanted]
    found = {place.name: _Counter(edges_of(wanted[place.name], place)) for place in chosen}
    floats = Runner(exact.model, list(found))
    others = Runner(quantized.model, list(dict.fromkeys(place.quantized for place in chosen)))
    for index, sample in enumerate(counted(samples, progress)):
        rough = dict(others(sample, index))
        for name, values in floats(sample, index):
            found[name].add(0, values)
        for place in chosen:
            found[place.name].add(1, rough[place.quantized])
    return tuple(found[entry.tensor].histogram(entry.tensor) for entry in measures)


def edges_of(entry: TensorMeasure, place: Place) -> Edges:
    """Bins over the float values and the encoding's reach, each of whole steps around its levels."""
    ends = (entry.low, entry.high, *(entry.reach or ()))
    low, high = min(ends), max(ends)
    if place.params is None:
        return np.asarray(np.linspace(low, high if high > low else low + 1, BINS + 1))
    step = place.params.scale[0]
    first = (entry.reach or ends)[0] - step / 2
    width = step * max(math.ceil((high - low) / step / BINS), 1)
    before, after = math.ceil((first - low) / width), math.ceil((high - first) / width)
    return np.asarray(first + width * np.arange(min(-before, 0), max(after, 1) + 1))


class _Counter:
    """Counts of the float and the quantized values between the edges."""

    def __init__(self, edges: Edges) -> None:
        self.edges = edges
        self.counts = np.zeros((2, edges.size - 1), np.int64)

    def add(self, row: int, values: NDArray[Any]) -> None:
        held = np.minimum(np.maximum(values, self.edges[0]), self.edges[-1])
        self.counts[row] += np.histogram(held, self.edges)[0]

    def histogram(self, tensor: str) -> Histogram:
        return Histogram(tensor, self.edges, self.counts[0], self.counts[1])
