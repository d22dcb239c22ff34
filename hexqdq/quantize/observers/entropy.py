"""Entropy: the range whose quantized distribution diverges least from the values' own."""

from __future__ import annotations

import numpy as np

from hexqdq.quantize.observers.base import Range
from hexqdq.quantize.observers.histogram import Counts, Histogram, HistogramObserver, Reals, shrunk

CANDIDATES = 33
"""Bounds tried per side, down to 1/16 of the extreme, where a level is about one bin wide."""
COARSE = 8
"""Bins per level: in finer ones the chance of a count would weigh more than the shape."""
_ABSENT = 1e-9
_EQUAL = 1e-12
"""Divergences that differ by less are equal, and the wider range is taken."""


class Entropy(HistogramObserver):
    """The bounds l <= 0 <= u that minimise the Kullback-Leibler divergence

        D(P || Q) = sum P log(P / Q)

    of P, the histogram with what is outside counted in its end bins, from Q, the histogram inside
    averaged over the bins of each level (Migacz 2017, "8-bit inference with TensorRT"). Both bounds
    shrink together first, then each alone.
    """

    method = "entropy"

    def choose(self, seen: Histogram, levels: int) -> Range:
        lows, highs = shrunk(min(seen.low, 0.0), CANDIDATES), shrunk(max(seen.high, 0.0), CANDIDATES)
        counts, centres = _coarse(seen, COARSE * levels)
        if levels >= counts.size:
            return seen.low, seen.high  # every bin has a level of its own: nothing diverges
        distribution = Distribution(counts, centres)

        def best(lows: Reals, highs: Reals) -> tuple[Reals, Reals]:
            divergences = distribution.divergences(lows, highs, levels)
            place = [int(np.argmax(divergences <= divergences.min() + _EQUAL))]
            return lows[place], highs[place]

        _, high = best(*np.broadcast_arrays(lows, highs))
        low, _ = best(*np.broadcast_arrays(lows, high))
        low, high = best(*np.broadcast_arrays(low, highs))
        return float(low[0]), float(high[0])


def _coarse(seen: Histogram, bins: int) -> tuple[Counts, Reals]:
    """Counts without the exact zeros, which any range keeps, in at most ``bins`` bins, and their centres."""
    counts, edges = seen.counts().copy(), seen.edges()
    if seen.zeros:
        counts[np.searchsorted(edges, 0.0, side="right") - 1] -= seen.zeros
    joined = -(-counts.size // bins)
    padded = np.append(counts, np.zeros(-counts.size % joined, np.int64))
    width = edges[1] - edges[0]
    centres = edges[0] + width * joined * (np.arange(padded.size // joined) + 0.5)
    return padded.reshape(-1, joined).sum(axis=1), centres


class Distribution:
    """Counts per bin, and running sums that give those of any level."""

    def __init__(self, counts: Counts, centres: Reals) -> None:
        self._counts, self._centres = counts, centres
        self._up_to = np.append(0, np.cumsum(counts))
        self._filled_up_to = np.append(0, np.cumsum(counts > 0))
        self._information_up_to = np.append(0.0, np.cumsum(_information(counts)))

    def divergences(self, lows: Reals, highs: Reals, levels: int) -> Reals:
        """D(P || Q) in nats of quantizing [low, high] to ``levels``, of each pair; infinite where nothing is inside."""
        starts = np.maximum(np.searchsorted(self._centres, lows) - 1, 0)
        stops = np.minimum(np.searchsorted(self._centres, highs) + 1, self._counts.size)
        steps = (highs - lows) / (levels - 1)
        between = np.searchsorted(self._centres, lows[:, None] + steps[:, None] * (np.arange(1, levels) - 0.5))
        between = np.minimum(np.maximum(between, starts[:, None]), stops[:, None])
        ends = np.concatenate([starts[:, None], between, stops[:, None]], axis=1)
        sums, filled = np.diff(self._up_to[ends]), np.diff(self._filled_up_to[ends])
        means = np.maximum(sums / np.maximum(filled, 1), _ABSENT)
        own = self._information_up_to[stops] - self._information_up_to[starts]
        cross = (sums * np.log(means)).sum(axis=1)
        below, above = self._up_to[starts], self._up_to[-1] - self._up_to[stops]
        one = starts == stops - 1
        for places, cut in ((starts, below + one * above), (stops - 1, np.where(one, 0, above))):
            counts = self._counts[places]
            level = (ends[:, 1:] <= places[:, None]).sum(axis=1)
            mean = np.where(counts > 0, means[np.arange(level.size), level], _ABSENT)
            own = own + _information(counts + cut) - _information(counts)
            cross = cross + cut * np.log(mean)
        total, inside = self._up_to[-1], self._up_to[stops] - self._up_to[starts]
        empty = stops - starts - (self._filled_up_to[stops] - self._filled_up_to[starts])
        with np.errstate(divide="ignore"):
            found = (own - cross) / total + np.log((inside + _ABSENT * empty) / total)
        return np.where((inside > 0) & (highs > lows), found, np.where(highs == lows, 0.0, np.inf))


def _information(counts: Counts) -> Reals:
    """c log c of each count."""
    return np.asarray(counts * np.log(np.maximum(counts, 1)))
