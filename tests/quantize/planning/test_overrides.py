"""Overrides by tensor, name pattern or op type: types, ranges, weights, float; what matches nothing is an error."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from hexqdq.errors import UsageError
from hexqdq.import_.pipeline import import_model
from hexqdq.qtypes import QType
from hexqdq.quantize.overrides import Override
from hexqdq.quantize.pipeline import quantize
from hexqdq.quantize.product import QdqModel
from hexqdq.quantize.recipe import Recipe
from tests.quantize.graphs import model, samples
from tests.quantize.planning.test_rows import params

TEXT = """m (float[1,3,6,6] x) => (float[1,4,2,2] y) {
    [stem] c = Conv(x, w, b) [act] r = Relu(c) [pool] p = MaxPool <kernel_shape = [2,2], strides = [2,2]> (r)
    [head_0] t = Tanh(p) [head_1] y = Neg(t) }"""


def quantized(*overrides: dict[str, Any], **options: Any) -> QdqModel:
    imported = import_model(model(TEXT))
    data = {"mixed": False, "bias_correct": False, "overrides": list(overrides), **options}
    return quantize(imported, samples(imported), Recipe.from_json(data))


def of_value(qdq: QdqModel, name: str) -> tuple[float, int, str]:
    """Scale, zero point and type of what a value of the float model is stored in."""
    values = {str(v.name): v for node in qdq.model.graph for v in node.outputs}
    value = values.get(f"{name}_float") or values.get(name) or qdq.model.graph.inputs[0]
    scale, zero_point = params(value)
    return float(scale), int(zero_point), zero_point.dtype.name


def types(qdq: QdqModel) -> dict[str, str]:
    return {name: of_value(qdq, name)[2] for name in ("x", "r", "p", "t", "y")}


NARROW = dict.fromkeys(("x", "r", "p", "t", "y"), "uint8")


@pytest.mark.parametrize(
    ("override", "wide"),
    [
        ({"tensor": "t"}, "t"),
        ({"tensor": "x"}, "x"),
        ({"tensor": "p"}, "rp"),
        ({"tensor": "c"}, "rp"),
        ({"nodes": "head_*"}, "ty"),
        ({"nodes": "*_0"}, "t"),
        ({"nodes": "stem"}, "rp"),
        ({"op_type": "Tanh"}, "t"),
        ({"op_type": "Conv"}, "rp"),
    ],
)
def test_a_type_is_that_of_all_that_shares_parameters(override: dict[str, Any], wide: str) -> None:
    assert types(quantized({**override, "activations": "u16"})) == NARROW | dict.fromkeys(wide, "uint16")


def test_the_last_override_stands() -> None:
    wide, signed = {"nodes": "*", "activations": "u16"}, {"tensor": "t", "activations": "s8"}
    assert types(quantized(wide, signed))["t"] == "int8"
    assert types(quantized(signed, wide))["t"] == "uint16"


def test_an_override_stands_above_mixed_precision() -> None:
    found = quantized({"nodes": "*", "activations": "u8"}, mixed=True, target_drop=0.0, budget=100.0)
    assert types(found) | {"x": "uint8"} == NARROW


def test_a_range_stands_above_that_of_the_samples() -> None:
    scale, zero_point, _ = of_value(quantized({"tensor": "r", "low": 0, "high": 51}), "p")
    assert scale == float(np.float32(0.2)) and zero_point == 0


def test_a_range_stands_above_that_of_the_op() -> None:
    assert of_value(quantized(), "t")[:2] == (1 / 128, 128)
    scale, zero_point, _ = of_value(quantized({"tensor": "t", "low": -0.5, "high": 0.77}), "t")
    assert scale == pytest.approx(1.27 / 255) and zero_point == 100


@pytest.mark.parametrize("override", [{"tensor": "w"}, {"tensor": "c"}, {"nodes": "st*"}, {"op_type": "Conv"}])
def test_a_type_of_weights(override: dict[str, Any]) -> None:
    qdq = quantized({**override, "weights": "s16"})
    (conv,) = (node for node in qdq.model.graph if node.op_type == "Conv")
    assert params(conv.inputs[1])[1].dtype == np.int16 and qdq.model.graph.opset_imports[""] >= 21


@pytest.mark.parametrize("override", [{"tensor": "t"}, {"nodes": "head_0"}, {"op_type": "Tanh"}])
def test_what_stays_float(override: dict[str, Any]) -> None:
    (decision,) = quantized({**override, "keep_float": True}).decisions
    assert (decision.node, decision.reason) == ("head_0", "the recipe keeps this node float")


@pytest.mark.parametrize(
    ("override", "said"),
    [
        (
            {"tensor": "tt", "activations": "u16"},
            "override of tensor 'tt': is for nothing in the model; close names are 't",
        ),
        ({"nodes": "haed_*", "activations": "u16"}, "close names are 'head_1', 'head_0'"),
        ({"op_type": "Tan", "activations": "u16"}, "close names are 'Tanh'"),
        ({"tensor": "x", "keep_float": True}, "is for an input of the model"),
    ],
)
def test_what_matches_nothing_is_an_error_with_close_names(override: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        quantized(override)
    assert said in str(caught.value)


def test_what_stays_float_has_no_type() -> None:
    with pytest.raises(UsageError, match="is for what stays float"):
        quantized({"tensor": "t", "activations": "u16"}, keep_float=["head_0", "head_1", "pool"])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, "names nothing; expected one of tensor, nodes, op_type"),
        ({"tensor": "a", "nodes": "b", "activations": "u16"}, "names tensor, nodes"),
        ({"tensor": "a"}, "changes nothing; expected one of activations, weights, low, high, keep_float"),
        ({"tensor": "a", "low": 1}, "has a range without both ends"),
        ({"nodes": "a", "low": 0, "high": 1}, "expected a tensor with low and high"),
        ({"tensor": "a", "low": 2, "high": 1}, "has the range [2, 1]"),
        ({"tensor": "a", "activations": "s4"}, "has activations 's4'; expected one of u8, s8, u16, s16"),
        ({"tensor": "a", "weights": "u16"}, "has weights 'u16'; expected one of s8, u8, s4, s16"),
        ({"tensor": "a", "bits": 8}, "has 'bits'; expected tensor, nodes, op_type, activations"),
        ({"tensor": 3, "activations": "u8"}, "names tensor"),
        ("x", "holds 'x'; expected objects"),
    ],
)
def test_a_wrong_override_is_told(data: Any, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        Recipe.from_json({"overrides": [data]})
    assert said in str(caught.value)


def test_round_trip() -> None:
    overrides = (Override(tensor="a", low=-1.0, high=2.0), Override(nodes="b*", activations=QType.S16, keep_float=True))
    recipe = Recipe(overrides=overrides)
    assert Recipe.from_json(json.loads(recipe.to_text())) == recipe
