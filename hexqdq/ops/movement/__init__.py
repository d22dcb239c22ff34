"""Ops that move integers and, save where scales or neighbours meet, change none."""

from __future__ import annotations

from hexqdq.ops.movement import blocks, concat, pad, resize, shape, slices

SPECS = (*shape.SPECS, *slices.SPECS, *concat.SPECS, *pad.SPECS, *blocks.SPECS, *resize.SPECS)
