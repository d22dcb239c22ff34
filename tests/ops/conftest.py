"""Prints how far the reference is from onnxruntime, also where workers ran the tests."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import pytest

from tests.ops.ladder import TALLIES, Tally


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker sends its tallies to the controller."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["ladder"] = {op_type: astuple(tally) for op_type, tally in TALLIES.items()}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """The controller adds a worker's tallies."""
    for op_type, counts in getattr(node, "workeroutput", {}).get("ladder", {}).items():
        TALLIES.setdefault(op_type, Tally()).add(Tally(*counts))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One line an op type."""
    if TALLIES:
        terminalreporter.write_line("reference against onnxruntime:")
    for op_type, tally in sorted(TALLIES.items()):
        terminalreporter.write_line(f"  {op_type:18} {tally}")
