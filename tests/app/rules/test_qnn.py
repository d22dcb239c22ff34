"""Rules of the QNN provider: each can fail, good graphs pass, and the default recipe obeys them."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from hexqdq.app.rules import qnn
from hexqdq.app.rules.judge import judge_graph
from tests.app.rules.build import Build
from tests.app.rules.planted import GOOD, PLANTED, Case

COMPANY = {
    qnn.PARAMETERS: {qnn.STATIC},
    qnn.ONE_SCALE: {qnn.LONE_CHANNELS},
    qnn.LONE_CHANNELS: {qnn.ONE_SCALE},
}
"""Faults that cannot be planted alone."""


def built(case: Case) -> ir.Graph:
    build = Build()
    case(build)
    return build.graph()


@pytest.mark.parametrize(("sentence", "case"), PLANTED)
def test_a_planted_fault_is_named(sentence: str, case: Case) -> None:
    breaches = judge_graph(built(case), "qnn").breaches
    assert sentence in {breach.rule for breach in breaches} <= {sentence, *COMPANY.get(sentence, ())}
    assert all(breach.found for breach in breaches)


def test_every_rule_has_a_planted_fault() -> None:
    rules = [rule for kind in qnn.KINDS for rule in kind.rules]
    rules += [rule for special in qnn.OF_OP.values() for rule in special] + list(qnn.OF_ALL)
    sentences = {rule.sentence for rule in rules} | {qnn.KNOWN_OPS, qnn.LONE_CHANNELS}
    assert sentences == {sentence for sentence, _ in PLANTED}


@pytest.mark.parametrize("case", GOOD)
def test_good_graphs_pass(case: Case) -> None:
    assert judge_graph(built(case), "qnn").breaches == ()


def test_every_op_is_of_one_kind() -> None:
    listed = [op for kind in qnn.KINDS for op in kind.ops]
    assert len(listed) == len(set(listed))
    assert set(qnn.OF_OP) <= set(listed)
