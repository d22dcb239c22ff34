"""The default QDQ form of every model obeys the QNN rules, apart from what is listed here with its reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.zoo import MODELS as ZOO
from hexqdq import driver
from hexqdq.app.rules.judge import Verdict, judge, judge_graph
from hexqdq.import_.pipeline import import_model
from hexqdq.quantize.pipeline import quantize
from hexqdq.quantize.recipe import PRESETS, Recipe
from tests.conftest import shared_folder

FLOAT = ("gtcrn_simple", "tinylm_prefill128", "tinylm_decode_kv128")
MODELS = {model.name: dict(model.shapes) for model in ZOO if model.is_float} | {name: {} for name in FLOAT}
RECURRENT = "the provider has no node group for recurrences; ours are quantized for the NPU, and stay on the CPU there"
EXCEPTIONS: dict[str, dict[str, str]] = {
    "gtcrn_simple": {
        "GRU": RECURRENT,
        "DequantizeLinear": "weights of the GRU",
        "ReduceL2": "the provider has none for it; here the squares stay inside the op, at no type's range",
    },
}
"""Op types by model that may break a rule, and why."""


def judged(name: str) -> Verdict:
    path = shared_folder() / "models" / f"{name}.onnx"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return judge(path, "qnn", MODELS[name])


@pytest.mark.parametrize("name", MODELS)
def test_default_output_obeys_the_rules(name: str) -> None:
    verdict = judged(name)
    assert {breach.op_type for breach in verdict.breaches} == set(EXCEPTIONS.get(name, {})), verdict.breaches[:3]
    assert verdict.units > 0 and verdict.assumption is not None


def test_the_digits_model_obeys_the_rules(root: Path) -> None:
    verdict = judge(root / "models" / "digits" / "digits.onnx", "qnn")
    assert verdict.breaches == ()
    assert verdict.assumption is not None
    assert verdict.to_json()["broken"] == 0


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_obeys_the_rules(preset: str, root: Path) -> None:
    imported = import_model(root / "models" / "digits" / "digits.onnx")
    qdq = quantize(imported, driver.made_up_feed(imported), Recipe.preset(preset))
    assert judge_graph(qdq.model.graph, "qnn").breaches == ()
