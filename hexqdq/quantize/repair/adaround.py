"""AdaRound's problem, solved by coordinate descent: every weight is rounded up or down.

    minimise e^T H e over q_k in {floor(w_k / step_k), ceil(w_k / step_k)},   q_k moved by round(-g_k / (H_kk step_k))

for every output channel, input by input, where g is the slope of half the objective, until nothing moves
or SWEEPS are done (Nagel, Amjad, van Baalen, Louizos, Blankevoort 2020, "Up or Down? Adaptive Rounding for
Post-Training Quantization", equations 12 to 19 for the problem; its relaxation by sigmoids is replaced:
descent needs no learning rate and stops at a point that no single change improves). The objective is the
paper's local one in second moments; what the activation function after the layer does to errors is left out.
Weights that an earlier pass moved further may stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from hexqdq import numerics
from hexqdq.quantize.calibration.calibrate import Progress, Sample
from hexqdq.quantize.draft import Draft
from hexqdq.quantize.repair.rounding import exact
from hexqdq.quantize.repair.rounding.exact import PANEL, Reals
from hexqdq.quantize.repair.rounding.passes import solved
from hexqdq.quantize.repair.rounding.problem import Problem

SWEEPS = 10


def adaround(draft: Draft, samples: Iterable[Sample], progress: Progress | None = None) -> Draft:
    """The draft with weights rounded up or down; no channel's error at its layer's output grows."""
    return solved(draft, samples, progress, draft.recipe.rounding_damping, descended)


def descended(problem: Problem) -> Reals:
    """The integers [groups, channels, k]."""
    real = problem.weights / problem.steps + problem.zeros
    low = np.minimum(numerics.bounded(np.floor(real), problem.bounds), problem.start)
    high = np.maximum(numerics.bounded(np.ceil(real), problem.bounds), problem.start)
    integers = problem.start.copy()
    slope = -exact.matmul(problem.errors(integers), problem.hessian)
    for _ in range(SWEEPS):
        if not _sweep(problem, integers, slope, low, high):
            break
    return problem.no_worse(integers)


def _sweep(problem: Problem, integers: Reals, slope: Reals, low: Reals, high: Reals) -> bool:
    """Visits every input once, in place; whether anything moved."""
    any_moved = False
    for start in range(0, integers.shape[-1], PANEL):
        panel = slice(start, start + PANEL)
        moved = _descend(problem, integers, slope[..., panel].copy(), low, high, panel)
        channels = moved.any(axis=(0, 2))
        if channels.any():
            any_moved = True
            slope[:, channels] += exact.matmul(moved[:, channels], problem.hessian[:, panel])
    return any_moved


def _descend(problem: Problem, integers: Reals, slope: Reals, low: Reals, high: Reals, panel: slice) -> Reals:
    """Moves the integers of a panel; by how much in real units [groups, channels, panel]."""
    hessian = problem.hessian[:, panel, panel]
    widest = (problem.bounds[0] - problem.bounds[1], problem.bounds[1] - problem.bounds[0])
    moved = np.zeros_like(slope)
    for k in range(slope.shape[-1]):
        at, steps = panel.start + k, problem.steps[..., panel.start + k]
        wanted = numerics.nearest(-slope[..., k] / (hessian[:, None, k, k] * steps), widest)
        found = np.minimum(np.maximum(integers[..., at] + wanted, low[..., at]), high[..., at])
        moved[..., k] = (found - integers[..., at]) * steps
        integers[..., at] = found
        slope += moved[..., k, None] * hessian[:, None, k, :]
    return moved
