"""A planted tail is found and widened, the budget is kept, and nothing is widened where 8 bits suffice."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper

from hexqdq.import_.pipeline import import_model
from hexqdq.qtypes import QType
from hexqdq.quantize.mixed.record import MixedPrecision
from hexqdq.quantize.overrides import Override
from hexqdq.quantize.pipeline import quantize
from hexqdq.quantize.product import QdqModel
from hexqdq.quantize.recipe import Recipe
from tests.import_.models import outputs, parse

Array = NDArray[Any]
Feed = dict[str, Array]

TEXT = """m (float[1,8,16,16] x) => (float[1,4,16,16] y) {
  a = Conv <pads = [1, 1, 1, 1]> (x, first, none)
  b = Mul(a, gains)
  c = Conv <pads = [1, 1, 1, 1]> (b, second, none)
  y = Conv <pads = [1, 1, 1, 1]> (c, third)
}"""
RECIPE = Recipe(method="minmax", smooth=False, target_drop=1.0)


def normal(*shape: int, seed: int) -> Array:
    values = np.random.default_rng(seed).normal(size=shape) / np.sqrt(np.prod(shape[1:]))
    return np.asarray(values, np.float32)


def planted() -> onnx.ModelProto:
    """Three convolutions; between the first two, one channel is ``tail`` times the others and is not read: its
    range takes the bits of all other channels."""
    made = parse(TEXT)
    second = normal(8, 8, 3, 3, seed=2)
    second[:, 5] = 0
    constants = {"first": normal(8, 8, 3, 3, seed=1), "second": second, "third": normal(4, 8, 3, 3, seed=3)}
    constants["none"] = np.zeros(8, np.float32)
    made.graph.initializer.extend(numpy_helper.from_array(values, name) for name, values in constants.items())
    # gains that were constant would be folded into the convolutions
    made.graph.input.append(onnx.helper.make_tensor_value_info("gains", onnx.TensorProto.FLOAT, [1, 8, 1, 1]))
    return made


def feeds(tail: float, count: int = 6) -> list[Feed]:
    gains = np.ones((1, 8, 1, 1), np.float32)
    gains[0, 5] = tail
    return [{"x": 10 * normal(1, 8, 16, 16, seed=seed), "gains": gains} for seed in range(10, 10 + count)]


def quantized(tail: float, recipe: Recipe = RECIPE) -> QdqModel:
    return quantize(import_model(planted()), feeds(tail), recipe)


def record(qdq: QdqModel) -> MixedPrecision:
    assert qdq.mixed is not None
    return qdq.mixed


def sqnr(tail: float, qdq: QdqModel) -> float:
    signal = error = 0.0
    for feed in feeds(tail):
        exact, rough = outputs(planted(), feed)[0], outputs(qdq.model, feed)[0]
        signal, error = signal + float((exact**2).sum()), error + float(((exact - rough) ** 2).sum())
    return 10 * math.log10(signal / error)


def types(qdq: QdqModel) -> Iterator[tuple[str, QType]]:
    """The stored type of every value that has a Q."""
    for node in qdq.model.graph:
        if node.op_type == "QuantizeLinear":
            zero_point = node.inputs[2]
            assert zero_point is not None and zero_point.const_value is not None and node.inputs[0] is not None
            yield str(node.inputs[0].name), QType.from_numpy(zero_point.const_value.numpy().dtype)


TAIL = 300.0


def test_tail_is_found_widened_and_told() -> None:
    qdq = quantized(TAIL, replace(RECIPE, budget=60))
    mixed, stored = record(qdq), dict(types(qdq))
    assert stored["b"] is QType.U16
    assert mixed.widened[0].tensor == "b" and mixed.widened[0].sqnr < 20
    assert sqnr(TAIL, qdq) > sqnr(TAIL, quantized(TAIL, replace(RECIPE, mixed=False))) + 10
    text = "\n".join(str(row) for table in mixed.tables() for row in table.rows)
    assert "b" in text and mixed.reason in text


def test_nothing_is_widened_where_8_bits_suffice() -> None:
    generous = replace(RECIPE, target_drop=8)
    qdq = quantized(1.0, generous)
    assert record(qdq).widened == () and record(qdq).chosen.mac_percent == 0
    assert {dtype for _, dtype in types(qdq)} == {QType.U8}
    assert qdq.digest == quantized(1.0, replace(generous, mixed=False)).digest


@pytest.mark.parametrize("budget", [0.0, 25.0, 45.0, 60.0, 100.0])
def test_budget_is_kept(budget: float) -> None:
    mixed = record(quantized(TAIL, replace(RECIPE, budget=budget, target_drop=0)))
    passed = "would leave" in mixed.reason
    assert passed or mixed.chosen.mac_percent <= budget
    assert passed == (budget < 40), "the group's readers alone have two fifths of the products"


def test_curve_is_monotone() -> None:
    curve = record(quantized(TAIL, replace(RECIPE, target_drop=0, budget=100))).curve
    assert len(curve) > 2
    assert [p.sqnr for p in curve] == sorted(p.sqnr for p in curve)
    assert [p.packet_percent for p in curve] == sorted(p.packet_percent for p in curve)
    assert sum(point.chosen for point in curve) == 1


def test_same_samples_same_choice() -> None:
    first, second = quantized(TAIL), quantized(TAIL)
    assert first.digest == second.digest and first.mixed == second.mixed


def test_signed_activations_widen_to_signed() -> None:
    qdq = quantized(TAIL, replace(RECIPE, activations=QType.S8, budget=60))
    assert dict(types(qdq))["b"] is QType.S16


def test_16_bit_recipes_are_left_alone() -> None:
    assert quantized(TAIL, replace(RECIPE, activations=QType.U16)).mixed is None


def test_record_survives_json() -> None:
    mixed = record(quantized(TAIL))
    assert MixedPrecision.from_json(mixed.to_json()) == mixed


@pytest.mark.parametrize("dtype", [QType.U8, QType.U16])
def test_types_that_the_user_chose_stand(dtype: QType) -> None:
    override = Override(tensor="b", activations=dtype)
    qdq = quantized(TAIL, replace(RECIPE, budget=60, overrides=(override,)))
    assert dict(types(qdq))["b"] is dtype
    assert "b" not in [entry.tensor for entry in record(qdq).widened]
    assert record(qdq).chosen.sqnr > 25 or dtype is QType.U8
