"""Rounding problems to solve."""

from __future__ import annotations

import numpy as np

from hexqdq import numerics
from hexqdq.quantize.repair.rounding.exact import Reals
from hexqdq.quantize.repair.rounding.problem import Problem, damped


def problem(
    weights: Reals,
    hessian: Reals,
    steps: Reals | float = 1.0,
    zeros: float = 0.0,
    bounds: tuple[int, int] = (-127, 127),
    damping: float = 1e-3,
) -> Problem:
    """Starts from the nearest integers."""
    every, offsets = np.broadcast_to(steps, weights.shape), np.full(weights.shape, zeros)
    start = numerics.nearest(weights / every + offsets, bounds)
    return Problem(weights, every, offsets, start, bounds, damped(hessian, damping))


def related(groups: int, channels: int, count: int, seed: int = 0) -> tuple[Reals, Reals]:
    """Weights of a few steps, and moments of inputs that go together."""
    chooser = np.random.default_rng(seed)
    mixing = chooser.normal(size=(groups, count, count)) * np.exp(chooser.normal(size=(groups, count, 1)))
    inputs = chooser.normal(size=(groups, 4 * count, count)) @ mixing + chooser.normal(size=(groups, 1, count))
    return 4 * chooser.normal(size=(groups, channels, count)), np.swapaxes(inputs, 1, 2) @ inputs / (4 * count)
