"""MSE: the range of least quantization error."""

from __future__ import annotations

import numpy as np

from hexqdq.quantize.observers.base import Range
from hexqdq.quantize.observers.histogram import Histogram, HistogramObserver, Reals, shrunk

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
        counts, edges = seen.counts(), seen.edges() / unit
        centres = (edges[1:] + edges[:-1]) / 2
        below = np.maximum((lows / unit)[:, None] - centres, 0.0)
        above = np.maximum(centres - (highs / unit)[:, None], 0.0)
        clipped = ((below > 0) @ counts)[:, None] + ((above > 0) @ counts)[None, :]
        inside = np.maximum(seen.total - seen.zeros - clipped, 0)
        power = self.knobs.mse_power
        half = (highs[None, :] - lows[:, None]) / unit / (levels - 1) / 2
        rounding = inside * half**power / (power + 1)
        return lows, highs, (below**power @ counts)[:, None] + (above**power @ counts)[None, :] + rounding
