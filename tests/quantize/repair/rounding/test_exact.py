"""Products and factors are right, and the same bits on any number of BLAS threads."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

from hexqdq.quantize.repair.rounding import exact
from hexqdq.quantize.repair.rounding.exact import Reals


def normal(*shape: int, seed: int = 0) -> Reals:
    spread = np.exp(3 * np.random.default_rng(seed + 1).normal(size=shape[-1]))
    values: Reals = np.random.default_rng(seed).normal(size=shape)
    return np.asarray(values * spread)


def moments(groups: int, count: int) -> Reals:
    rows = normal(groups, 4 * count, count)
    return np.swapaxes(rows, 1, 2) @ rows + 1e-3 * np.eye(count)


@pytest.mark.parametrize("shape", [(1, 3, 5, 7), (2, 1, 1, 1), (1, 4, 0, 3), (1, 2, 2 * exact.LONGEST + 1, 2)])
def test_product(shape: tuple[int, int, int, int]) -> None:
    groups, rows, inner, columns = shape
    left, right = normal(groups, rows, inner), normal(groups, inner, columns, seed=5)
    largest = np.abs(left).max(axis=2, keepdims=True, initial=0) * np.abs(right).max(axis=1, keepdims=True, initial=0)
    for coarse, bits in ((False, 36), (True, 18)):
        error = np.abs(exact.matmul(left, right, coarse) - left @ right)
        assert (error <= inner * largest * 2.0**-bits).all()


def test_product_of_zeros() -> None:
    assert not exact.matmul(np.zeros((1, 3, 4)), normal(1, 4, 2)).any()


@pytest.mark.parametrize("count", [1, 5, exact.PANEL, exact.PANEL + 1, 3 * exact.PANEL + 7])
def test_factor(count: int) -> None:
    matrix = moments(2, count)
    upper, diagonal = exact.factored(matrix)
    np.testing.assert_array_equal(np.diagonal(upper, axis1=1, axis2=2), 1.0)
    np.testing.assert_array_equal(upper, np.triu(upper))
    inverse = np.linalg.inv(upper)
    middle = inverse @ matrix @ np.swapaxes(inverse, 1, 2)
    pivots = np.diagonal(middle, axis1=1, axis2=2)
    np.testing.assert_allclose(diagonal, pivots, rtol=1e-6)
    size = np.sqrt(pivots[:, :, None] * pivots[:, None, :])
    assert (np.abs(middle - pivots[:, :, None] * np.eye(count)) <= 1e-6 * size).all()


def digest() -> str:
    """Of a factor and a product that BLAS shares out among its threads."""
    factor = np.random.default_rng(3).normal(size=(1, 400, 400))
    symmetric = exact.matmul(factor, np.swapaxes(factor, 1, 2)) + np.eye(400)
    return hashlib.sha256(exact.factored(symmetric)[0].tobytes()).hexdigest()


def test_any_number_of_threads() -> None:
    code = f"from {__name__} import digest; print(digest())"
    found = set()
    for threads in ("1", "2", "5"):
        environment = os.environ | {"OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
        ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        found.add(ran.stdout)
    assert len(found) == 1
