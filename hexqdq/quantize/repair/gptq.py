"""GPTQ: rounds a contraction's weights one input after the other, each making up for those before.

    q_k = round(w_k + sum over j < k of (w_j - q_j) U_jk),   H = U D U^T, U unit upper triangular

for every output channel, with the inputs k in the order of falling activity H_kk and H the second
moments of the layer's quantized inputs (Frantar, Ashkboos, Hoefler, Alistarh 2022, "GPTQ: Accurate
Post-Training Quantization for Generative Pre-trained Transformers"). The paper propagates errors through
the Cholesky factor of the inverse of H; this is the same without an inverse, as shown by Chee, Cai,
Kuleshov, De Sa 2023, "QuIP: 2-Bit Quantization of Large Language Models With Guarantees", theorem 6.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from hexqdq import numerics
from hexqdq.quantize.calibration.calibrate import Progress, Sample
from hexqdq.quantize.draft import Draft
from hexqdq.quantize.repair.rounding import exact
from hexqdq.quantize.repair.rounding.exact import PANEL, Reals
from hexqdq.quantize.repair.rounding.passes import solved
from hexqdq.quantize.repair.rounding.problem import Problem


def gptq(draft: Draft, samples: Iterable[Sample], progress: Progress | None = None) -> Draft:
    """The draft with weights rounded by GPTQ; no channel's error at its layer's output grows."""
    return solved(draft, samples, progress, draft.recipe.rounding_damping, fed_back)


def fed_back(problem: Problem) -> Reals:
    """The integers [groups, channels, k]."""
    order = np.argsort(-np.diagonal(problem.hessian, axis1=-2, axis2=-1), axis=-1, kind="stable")
    along = np.broadcast_to(order[:, None, :], problem.weights.shape)
    found = np.empty_like(problem.weights)
    np.put_along_axis(found, along, _in_order(_reordered(problem, order, along)), -1)
    return found


def _reordered(problem: Problem, order: NDArray[np.intp], along: NDArray[np.intp]) -> Problem:
    rows = np.take_along_axis(problem.hessian, order[:, :, None], 1)
    weights, steps, zeros, start = (
        np.take_along_axis(values, along, -1)
        for values in (problem.weights, problem.steps, problem.zeros, problem.start)
    )
    return Problem(weights, steps, zeros, start, problem.bounds, np.take_along_axis(rows, order[:, None, :], 2))


def _in_order(problem: Problem) -> Reals:
    """The integers, or those at the start of the channels where they cost less: sum over k of D_k (U^T e)_k^2."""
    upper, diagonal = exact.factored(problem.hessian)
    integers, errors = np.empty_like(problem.weights), np.zeros_like(problem.weights)
    remainders = np.empty_like(integers)
    for left in range(0, integers.shape[-1], PANEL):
        panel = slice(left, min(left + PANEL, integers.shape[-1]))
        target = problem.weights[..., panel] + exact.matmul(errors[..., :left], upper[..., :left, panel], coarse=True)
        for k in range(panel.start, panel.stop):
            made_up = (errors[..., left:k] * upper[:, None, left:k, k]).sum(axis=-1)
            wanted, steps, zeros = target[..., k - left] + made_up, problem.steps[..., k], problem.zeros[..., k]
            integers[..., k] = numerics.nearest(wanted / steps + zeros, problem.bounds)
            real = (integers[..., k] - zeros) * steps
            errors[..., k], remainders[..., k] = problem.weights[..., k] - real, wanted - real
    at_start = exact.matmul(problem.errors(problem.start), upper, coarse=True)
    cost, least = (np.square(one) * diagonal[:, None, :] for one in (remainders, at_start))
    return np.where((cost.sum(axis=-1) < least.sum(axis=-1))[..., None], integers, problem.start)
