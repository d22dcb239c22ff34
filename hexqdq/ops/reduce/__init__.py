"""Reductions over whole axes: means, and the index of the largest value."""

from __future__ import annotations

from hexqdq.ops.reduce import argmax, mean

SPECS = (*mean.SPECS, *argmax.SPECS)
