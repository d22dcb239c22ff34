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
        together = list(zip(_stretched(lows), _stretched(highs), strict=True))
        counts, centres = _coarse(seen, COARSE * levels)
        if levels >= counts.size:
            return seen.low, seen.high  # every bin has a level of its own: nothing diverges

        def best(pairs: list[Range]) -> Range:
            divergences = [divergence(counts, centres, low, high, levels) for low, high in pairs]
            return pairs[int(np.argmin(divergences))]

        _, high = best(together)
        low, _ = best([(float(low), high) for low in lows])
        return best([(low, float(high)) for high in highs])


def _stretched(bounds: Reals) -> list[float]:
    """CANDIDATES bounds; where there is 0 alone, 0 for all."""
    return [float(bound) for bound in np.broadcast_to(bounds, CANDIDATES)]


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


def divergence(counts: Counts, centres: Reals, low: float, high: float, levels: int) -> float:
    """D(P || Q) in nats of quantizing [low, high] to ``levels``; infinite where nothing is inside."""
    start, stop = np.searchsorted(centres, [low, high])
    start, stop = (max(int(start) - 1, 0), min(int(stop) + 1, counts.size))
    inside = counts[start:stop].astype(np.float64)
    if not inside.sum() or not high > low:
        return 0.0 if high == low else np.inf
    seen = inside > 0
    reference = inside.copy()
    reference[0] += counts[:start].sum()
    reference[-1] += counts[stop:].sum()
    step = (high - low) / (levels - 1)
    level = np.floor((np.minimum(np.maximum(centres[start:stop], low), high) - low) / step + 0.5).astype(np.intp)
    mean = np.bincount(level, inside) / np.maximum(np.bincount(level, seen), 1)
    averaged = np.where(seen, mean[level], _ABSENT)
    reference, averaged = reference / reference.sum(), averaged / averaged.sum()
    present = reference > 0
    return float(np.sum(reference[present] * np.log(reference[present] / averaged[present])))
