"""Percentile: the range that keeps a share of the values."""

from __future__ import annotations

import numpy as np

from hexqdq.quantize.observers.base import Range
from hexqdq.quantize.observers.histogram import Histogram, HistogramObserver


class Percentile(HistogramObserver):
    """Cuts half of what ``percentile`` leaves out on each side, in whole bins of the histogram.

    Suits long thin tails; wrong where rare values carry the result, as the scores of a detector do.
    """

    method = "percentile"

    def choose(self, seen: Histogram, levels: int) -> Range:
        cut = seen.total * (100.0 - self.knobs.percentile) / 200.0
        edges, up_to = seen.edges(), np.cumsum(seen.counts())
        first = int(np.argmax(up_to > cut))
        last = int(np.argmax(up_to >= seen.total - cut))
        return float(edges[first]), float(edges[last + 1])
