"""Graphs of several units on the ladder: integers only, single steps from onnxruntime travel."""

from __future__ import annotations

import pytest

from tests.ops.cases import Case
from tests.ops.ladder import climb_compiled, climb_integers, sampled
from tests.ops.whole import graphs, pyramids

CASES = (*graphs.CASES, *pyramids.CASES)


@pytest.mark.tosa
@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case) -> None:
    climb_integers(case)


@pytest.mark.qemu
@pytest.mark.parametrize("case", sampled(CASES), ids=str)
def test_compiled(case: Case, qemu: str) -> None:
    climb_compiled(case)
