"""The problem that every pass that rounds weights solves.

    minimise over integers q:  sum over channels c of  e_c^T H e_c,   e_c = w_c - step_c * (q_c - zero_c)

which is the mean square of what rounding changes at the contraction's output. H is that of moments.py,
damped: a share of its mean diagonal is added to the diagonal, so that few samples move no weight far.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hexqdq.quantize.repair.rounding import exact
from hexqdq.quantize.repair.rounding.exact import Reals


@dataclass(frozen=True, eq=False)
class Problem:
    """``weights``, ``steps``, ``zeros`` and ``start`` are [groups, channels, k], ``hessian`` [groups, k, k].

    ``start`` are the integers so far, ``bounds`` the least and the largest integer.
    """

    weights: Reals
    steps: Reals
    zeros: Reals
    start: Reals
    bounds: tuple[int, int]
    hessian: Reals

    def errors(self, integers: Reals) -> Reals:
        return self.weights - (integers - self.zeros) * self.steps

    def cost(self, integers: Reals) -> Reals:
        """The objective of every channel [groups, channels]."""
        errors = self.errors(integers)
        return np.asarray((exact.matmul(errors, self.hessian) * errors).sum(axis=-1))

    def no_worse(self, found: Reals) -> Reals:
        """What was found, but where a channel then costs more than it does at the start."""
        return np.where((self.cost(found) < self.cost(self.start))[..., None], found, self.start)


def damped(hessian: Reals, share: float) -> Reals:
    """The Hessian with ``share`` of its mean diagonal on top; the identity where it is zero."""
    count = hessian.shape[-1]
    mean = np.trace(hessian, axis1=-2, axis2=-1) / count
    added = np.where(mean > 0, share * mean, 1.0)
    return np.asarray(hessian + added[:, None, None] * np.eye(count))
