"""``explain`` on QDQ models, on float models and on shapes that are missing."""

from __future__ import annotations

import json

import pytest

from hexqdq.app.explain import FLOAT_ASSUMPTION, explain
from hexqdq.errors import ModelError, UsageError
from hexqdq.report import to_json_text
from tests.import_.models import parse
from tests.partition.odd import ODD
from tests.quantize.graphs import model
from tests.quantize.test_graphs import GRAPHS


def test_qdq_model_is_explained_as_it_is() -> None:
    explanation = explain(ODD["inside_and_outside"])
    assert explanation.assumption is None
    assert [d.op_type for d in explanation.decisions if d.segment is None] == ["Sin"]


def test_float_model_assumes_the_default_recipe_and_says_so() -> None:
    explanation = explain(model(GRAPHS["float_op_between"]))
    assert explanation.assumption == FLOAT_ASSUMPTION
    assert FLOAT_ASSUMPTION in explanation.to_text()
    assert [d.op_type for d in explanation.decisions if d.reason] == ["Atan"]
    assert len(explanation.segments) == 2


def test_json_has_nodes_segments_and_share() -> None:
    data = json.loads(to_json_text(explain(ODD["host_bridge"])))
    assert set(data) == {"assumption", "nodes", "segments", "npu_mac_share"}
    assert all(set(node) == {"name", "op_type", "segment", "reason", "macs"} for node in data["nodes"])
    assert [segment["segment"] for segment in data["segments"]] == [0, 1]
    assert sum(len(segment["nodes"]) for segment in data["segments"]) == len(data["nodes"]) - 1
    assert data["npu_mac_share"] == 1.0


def test_share_counts_what_stays_on_the_cpu() -> None:
    assert explain(ODD["missing_q"]).npu_mac_share == 0.0
    assert explain(ODD["float_only"]).npu_mac_share is None


def test_faults_of_the_caller() -> None:
    dynamic = parse("m (float[n,4] x) => (float[n,4] y) { y = Relu(x) }")
    with pytest.raises(ModelError, match="--input-shape x:nx4"):
        explain(dynamic)
    assert explain(dynamic, input_shapes={"x": (2, 4)}).decisions
    with pytest.raises(UsageError, match="target 'v99'"):
        explain(ODD["plain"], target="v99")
