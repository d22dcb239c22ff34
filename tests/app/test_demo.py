"""The demo: the embedded model through every executor, equal to the bit and as accurate as float."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from hexqdq.app import demo
from hexqdq.context.executors.qemu import QEMU
from hexqdq.report import to_json_text


@pytest.fixture(scope="module")
def outcome() -> demo.DemoOutcome:
    return demo.run_demo()


def test_every_executor_here_gives_the_same_bits(outcome: demo.DemoOutcome) -> None:
    assert [trial.name for trial in outcome.trials][:2] == ["reference", "host"]
    assert outcome.equal
    assert all(trial.outputs.shape == (500, 10) for trial in outcome.trials)


def test_the_hexagon_code_takes_part(outcome: demo.DemoOutcome, qemu: str) -> None:
    assert "qemu" in [trial.name for trial in outcome.trials]


def test_the_context_is_as_accurate_as_the_float_model(outcome: demo.DemoOutcome) -> None:
    floating = outcome.baselines[0].accuracy(outcome.labels)
    assert floating >= 97.0
    for trial in outcome.trials:
        assert abs(trial.accuracy(outcome.labels) - floating) <= 0.5


def test_every_node_runs_on_the_npu(outcome: demo.DemoOutcome) -> None:
    assert all(decision.segment == 0 for decision in outcome.decisions)


def test_tables_and_json_say_so(outcome: demo.DemoOutcome) -> None:
    data = json.loads(to_json_text(outcome.to_json()))
    assert data["equal"] is True and data["samples"] == 500
    assert "equal to the bit" in outcome.verdict
    assert len(data["results"]) == len(outcome.baselines) + len(outcome.trials)


def test_one_flipped_bit_is_seen(outcome: demo.DemoOutcome) -> None:
    last = outcome.trials[-1]
    outputs = last.outputs.copy()
    outputs.view(np.uint32)[3, 4] ^= 1
    flipped = demo.Trial(last.name, outputs, last.load, last.latency)
    broken = demo.DemoOutcome(
        outcome.labels, outcome.baselines, (*outcome.trials[:-1], flipped), (), outcome.decisions, outcome.measures
    )
    assert broken.differing(flipped) == 1
    assert not broken.equal
    assert "DIFFER" in broken.verdict


def test_a_missing_qemu_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert QEMU in demo.absent_executors()["qemu"]
