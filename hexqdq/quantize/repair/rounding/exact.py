"""Products and factors of float64 matrices that are the same bits whatever order BLAS adds in.

Each factor is split into a high and a low integer part of at most 20 bits, so that no product or sum of
them passes 2**53: nothing is rounded while BLAS adds, hence nothing depends on its number of threads
(K. Ozaki, T. Ogita, S. Oishi, S. Rump 2012, "Error-free transformations of matrix multiplication by
using fast routines of matrix multiplication and its applications"). The product of both low parts is
left out, which leaves an error of about 2**-38 of a row's and a column's largest values; ``coarse``
leaves out all low parts and has one of about 2**-20.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hexqdq import numerics

Reals = NDArray[np.float64]

BITS = 20
LONGEST = 1 << (52 - 2 * BITS)
"""Terms that one BLAS sum may have."""
LEAST_EXPONENT = -900
"""Of two: what is smaller counts as nothing."""
PANEL = 192
STRIPE = 512
"""Columns of a symmetric matrix that are brought up to date together, from the diagonal down."""


def matmul(left: Reals, right: Reals, coarse: bool = False) -> Reals:
    """``left @ right`` of [..., m, k] and [..., k, n]."""
    total = np.zeros((*left.shape[:-1], right.shape[-1]))
    for start in range(0, left.shape[-1], LONGEST):
        span = slice(start, start + LONGEST)
        total += _short(left[..., span], right[..., span, :], coarse)
    return total


def _short(left: Reals, right: Reals, coarse: bool) -> Reals:
    left_high, left_low, left_scale = _split(left, -1)
    right_high, right_low, right_scale = _split(right, -2)
    product = left_high @ right_high
    if not coarse:
        cross = left_high @ right_low
        cross += left_low @ right_high
        cross *= 2.0**-BITS
        product += cross
    product *= left_scale
    product *= right_scale
    return product


def _split(values: Reals, axis: int) -> tuple[Reals, Reals, Reals]:
    """Integers ``high`` and ``low`` and a power of two: values = (high + low / 2**BITS) * scale."""
    largest = np.abs(values).max(axis=axis, keepdims=True, initial=0.0)
    exponents = np.maximum(np.frexp(largest)[1], LEAST_EXPONENT) - BITS
    low = values * np.ldexp(1.0, -exponents)
    high = numerics.whole(low)
    low -= high
    low *= 2.0**BITS
    return high, numerics.whole(low), np.ldexp(1.0, exponents)


def factored(matrix: Reals) -> tuple[Reals, Reals]:
    """U with ones on its diagonal and D [..., n], of U D U^T = matrix [..., n, n], which is positive definite."""
    rest = matrix[..., ::-1, ::-1].copy()
    lower, diagonal = np.zeros_like(rest), np.empty(rest.shape[:-1])
    for start in range(0, rest.shape[-1], PANEL):
        stop = min(start + PANEL, rest.shape[-1])
        panel = rest[..., start:, start:stop].copy()
        pivots = diagonal[..., start:stop] = _eliminate(panel)
        lower[..., start:, start:stop] = panel
        below = panel[..., stop - start :, :]
        for left in range(stop, rest.shape[-1], STRIPE):
            rows, columns = below[..., left - stop :, :] * pivots[..., None, :], below[..., left - stop :, :]
            rest[..., left:, left : left + STRIPE] -= matmul(rows, np.swapaxes(columns[..., :STRIPE, :], -1, -2))
    return lower[..., ::-1, ::-1], diagonal[..., ::-1]


def _eliminate(panel: Reals) -> Reals:
    """Columns [..., rows, n] become those of unit lower L, in place; the pivots [..., n]."""
    count = panel.shape[-1]
    pivots = np.empty((*panel.shape[:-2], count))
    for k in range(count):
        pivots[..., k] = panel[..., k, k]
        panel[..., :k, k] = 0.0
        panel[..., k:, k] /= pivots[..., k, None]
        column = panel[..., k + 1 :, k]
        row = column[..., : count - k - 1] * pivots[..., k, None]
        panel[..., k + 1 :, k + 1 :] -= column[..., :, None] * row[..., None, :]
    return pivots
