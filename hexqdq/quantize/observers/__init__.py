"""Observers: how calibration turns the values of a tensor into its range; one file each."""

from __future__ import annotations

from hexqdq.quantize.observers.average import MovingAverage
from hexqdq.quantize.observers.base import Observer
from hexqdq.quantize.observers.entropy import Entropy
from hexqdq.quantize.observers.minmax import MinMax
from hexqdq.quantize.observers.mse import Mse
from hexqdq.quantize.observers.percentile import Percentile

METHODS: dict[str, type[Observer]] = {
    "minmax": MinMax,
    "average": MovingAverage,
    "percentile": Percentile,
    "entropy": Entropy,
    "mse": Mse,
}
"""Every calibration method by the name that recipes use."""
