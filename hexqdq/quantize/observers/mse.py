"""MSE: the range of least quantization error."""

from __future__ import annotations

import numpy as np

from hexqdq.quantize.observers.base import Range
from hexqdq.quantize.observers.histogram import Counts, Histogram, HistogramObserver, Reals, shrunk

CANDIDATES = 49
"""Bounds tried per side, down to 1/64 of the extreme."""


class Mse(HistogramObserver):
    """The bounds l <= 0 <= u that minimise the summed error of power p over all values x,

        sum |x - clip(x, l, u)|**p  +  n * (s / 2)**p / (p + 1),   s = (u - l) / (levels - 1)

    where the n values inside, exact zeros left out, are spread evenly over a step (Sung, Shin,
    Hwang 2015, "Resiliency of deep neural networks under quantization", section 3, for p = 2).
    """

    method = "mse"

    def choose(self, seen: Histogram, levels: int) -> Range:
        lows, highs, errors = self.errors(seen, levels)
        left, right = np.unravel_index(int(errors.argmin()), errors.shape)
        return float(lows[left]), float(highs[right])

    def errors(self, seen: Histogram, levels: int) -> tuple[Reals, Reals, Reals]:
        """Lower bounds, upper bounds and the error of each pair, in units of the largest magnitude."""
        lows, highs = shrunk(min(seen.low, 0.0), CANDIDATES), shrunk(max(seen.high, 0.0), CANDIDATES)
        unit = max(abs(seen.low), abs(seen.high)) or 1.0
        below = _clipped(seen.counts(), seen.edges() / unit, lows / unit, self.knobs.mse_power)
        above = _clipped(seen.counts()[::-1], -seen.edges()[::-1] / unit, -highs / unit, self.knobs.mse_power)
        inside = np.maximum(seen.total - seen.zeros - below[0][:, None] - above[0][None, :], 0)
        half = (highs[None, :] - lows[:, None]) / unit / (levels - 1) / 2
        rounding = inside * half**self.knobs.mse_power / (self.knobs.mse_power + 1)
        return lows, highs, below[1][:, None] + above[1][None, :] + rounding


def _clipped(counts: Counts, edges: Reals, bounds: Reals, power: float) -> tuple[Counts, Reals]:
    """How many values lie below each bound, and the sum of their distances to it to the ``power``."""
    centres = (edges[1:] + edges[:-1]) / 2
    ends = np.searchsorted(centres, bounds)
    pairs = zip(bounds, ends, strict=True)
    distances = [np.sum(np.abs(bound - centres[:end]) ** power * counts[:end]) for bound, end in pairs]
    return np.append(0, np.cumsum(counts))[ends], np.array(distances)
