"""Observers: how calibration turns the values of a tensor into its range; one file each."""

from __future__ import annotations

from hexqdq.quantize.observers.base import Observer
from hexqdq.quantize.observers.minmax import MinMax

METHODS: dict[str, type[Observer]] = {"minmax": MinMax}
"""Every calibration method by the name that recipes use."""
