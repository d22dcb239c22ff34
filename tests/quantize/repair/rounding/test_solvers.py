"""GPTQ and AdaRound find better integers than the nearest, and never worse ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from hexqdq.quantize.repair.adaround import descended
from hexqdq.quantize.repair.gptq import fed_back
from hexqdq.quantize.repair.rounding.exact import PANEL, Reals
from hexqdq.quantize.repair.rounding.problem import Problem
from tests.quantize.repair.rounding.problems import problem, related

Solver = Callable[[Problem], Reals]
both = pytest.mark.parametrize("solver", [fed_back, descended])


@both
@pytest.mark.parametrize("shape", [(1, 6, 40), (5, 1, 9), (3, 4, 1), (1, 2, PANEL + 30)])
@pytest.mark.parametrize("seed", range(3))
def test_no_channel_gets_worse(solver: Solver, shape: tuple[int, int, int], seed: int) -> None:
    posed = problem(*related(*shape, seed=seed))
    found, at_start = posed.cost(solver(posed)), posed.cost(posed.start)
    assert (found <= at_start).all()
    if shape[2] > 1:
        assert found.sum() < 0.8 * at_start.sum()


@both
def test_planted(solver: Solver) -> None:
    """Two inputs that are always the same: the nearest integers lose 0.8 of a step, others nothing."""
    posed = problem(np.array([[[1.4, 2.4, -3.0]]]), np.array([[[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]]))
    np.testing.assert_array_equal(posed.start, [[[1, 2, -3]]])
    found = solver(posed)
    assert found[0, 0, :2].sum() == 4 and found[0, 0, 2] == -3


@both
@pytest.mark.parametrize("bounds", [(-7, 7), (0, 15)])
def test_integers_keep_to_their_range(solver: Solver, bounds: tuple[int, int]) -> None:
    weights, hessian = related(2, 5, 30)
    posed = problem(4 * weights, hessian, zeros=float(max(bounds[0], 0)), bounds=bounds)
    found = solver(posed)
    assert ((posed.start == bounds[0]) | (posed.start == bounds[1])).sum() > 20
    assert found.min() >= bounds[0] and found.max() <= bounds[1]
    np.testing.assert_array_equal(found, np.rint(found))
    assert (posed.cost(found) <= posed.cost(posed.start)).all()


@both
def test_nothing_seen_changes_nothing(solver: Solver) -> None:
    weights, hessian = related(2, 3, 12)
    posed = problem(weights, np.zeros_like(hessian))
    np.testing.assert_array_equal(solver(posed), posed.start)


@both
def test_dead_inputs_stay_nearest(solver: Solver) -> None:
    weights, hessian = related(1, 4, 20)
    hessian[:, 3], hessian[:, :, 3] = 0, 0
    posed = problem(weights, hessian)
    np.testing.assert_array_equal(solver(posed)[..., 3], posed.start[..., 3])


@both
def test_steps_of_blocks_and_zero_points(solver: Solver) -> None:
    weights, hessian = related(1, 4, 32)
    steps = np.repeat(np.array([0.25, 1.0, 4.0, 0.5]), 8) * np.array([[[1.0], [2.0], [0.5], [1.5]]])
    plain, moved = (problem(weights, hessian, steps, zeros=zeros) for zeros in (0.0, 9.0))
    found = solver(plain)
    assert plain.cost(found).sum() < 0.9 * plain.cost(plain.start).sum()
    np.testing.assert_array_equal(solver(moved), found + 9)


def test_descent_ends_where_no_single_change_helps() -> None:
    posed = problem(*related(1, 5, 16))
    found = descended(posed)
    least = posed.cost(found)
    for k in range(found.shape[2]):
        for step in (-1, 1):
            other = found.copy()
            other[..., k] += step
            inside = np.abs(posed.errors(other)[..., k]) < posed.steps[..., k]
            assert (posed.cost(other)[inside] >= least[inside] * (1 - 1e-9)).all()


def test_weights_go_up_or_down() -> None:
    posed = problem(*related(1, 8, 30))
    assert (np.abs(posed.errors(descended(posed))) < 1).all()


def test_descent_goes_on_from_where_gptq_ends() -> None:
    posed = problem(*related(1, 8, 60))
    first = fed_back(posed)
    assert (np.abs(posed.errors(first)) > 1).any()
    then = descended(replace(posed, start=first))
    assert posed.cost(then).sum() <= posed.cost(first).sum() < posed.cost(descended(posed)).sum()
