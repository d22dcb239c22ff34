"""Pools: a mean or the largest value of windows."""

from __future__ import annotations

from hexqdq.ops.pool import average, maximum

SPECS = (*average.SPECS, *maximum.SPECS)
