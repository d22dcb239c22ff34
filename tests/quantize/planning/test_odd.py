"""Graphs at the edges: nothing in a tensor, NaN in constants, constants as outputs, a value used twice, batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper

from hexqdq.errors import CalibrationError
from hexqdq.import_.pipeline import import_model
from hexqdq.import_.product import ImportedModel
from hexqdq.quantize.observers import METHODS
from hexqdq.quantize.pipeline import quantize
from hexqdq.quantize.product import QdqModel
from hexqdq.quantize.recipe import Recipe
from tests.import_.models import outputs, parse
from tests.quantize.graphs import CONSTANTS, normal

Array = NDArray[Any]
HELD: dict[str, Array] = {
    **{name: CONSTANTS[name] for name in ("w", "b", "wm", "bm", "row", "half")},
    "none": np.zeros((2, 0), np.float32),
    "starts": np.array([0], np.int64),
    "ends": np.array([0], np.int64),
    "last": np.array([1], np.int64),
    "two": np.array([2], np.int64),
    "one": np.array([1, 1], np.float32),
    "dead": np.zeros((4, 5), np.float32),
    "scalar": np.array(3, np.float32),
}
GRAPHS = {
    "an empty slice joined": """(float[2,4] x) => (float[2,4] y) {
        e = Slice(x, starts, ends, last) c = Concat <axis = 1> (e, x) y = Neg(c) }""",
    "an empty constant joined": """(float[2,4] x) => (float[2,4] y) { c = Concat <axis = 1> (none, x) y = Neg(c) }""",
    "an empty output": """(float[2,4] x) => (float[2,0] e, float[2,4] y) {
        n = Neg(x) e = Slice(n, starts, ends, last) y = Tanh(n) }""",
    "arithmetic on nothing": """(float[2,0] x, float[2,4] z) => (float[2,0] y, float[2,4] t) {
        y = Neg(x) t = Tanh(z) }""",
    "a constant output": "(float[2,4] x) => (float[4,5] k, float[2,4] y) { k = Identity(wm) y = Neg(x) }",
    "a folded output": "(float[2,4] x) => (float[4,5] k, float[2,4] y) { k = Mul(wm, half) y = Neg(x) }",
    "an input as output": "(float[2,4] x) => (float[2,4] k, float[2,4] y) { k = Identity(x) y = Neg(x) }",
    "weights as output too": "(float[2,4] x) => (float[4,5] k, float[2,5] y) { k = Identity(wm) y = MatMul(x, wm) }",
    "a value twice": "(float[2,4] x) => (float[2,8] y) { s = Add(x, x) m = Mul(s, s) y = Concat <axis = 1> (m, m) }",
    "an output read on": "(float[2,4] x) => (float[2,4] k, float[2,4] y) { k = Neg(x) y = Tanh(k) }",
    "an input that nothing reads": "(float[2,4] x, float[3] z) => (float[2,4] y) { y = Neg(x) }",
    "dead weights": "(float[2,4] x) => (float[2,5] y) { m = MatMul(x, dead) y = Add(m, bm) }",
    "constant values": "(float[2,4] x) => (float[2,4] y) { z = Sub(x, x) y = Add(z, scalar) }",
    "one number": "(float x) => (float y) { n = Neg(x) y = Mul(n, half) }",
    "a batch": "(float[5,3,6,6] x) => (float[5,4,4,4] y) { c = Conv(x, w, b) y = Relu(c) }",
    "a batch of rows": "(float[3,7,4] x) => (float[3,7,5] y) { m = MatMul(x, wm) y = Add(m, bm) }",
}


def model(name: str) -> onnx.ModelProto:
    made = parse(f"m {GRAPHS[name]}", 17)
    used = {value for node in made.graph.node for value in node.input}
    made.graph.initializer.extend(numpy_helper.from_array(HELD[n], n) for n in sorted(used & set(HELD)))
    return made


def samples(imported: ImportedModel) -> list[dict[str, Array]]:
    inputs = {str(v.name): tuple(v.shape.numpy()) for v in imported.model.graph.inputs if v.shape is not None}
    made = ({name: np.asarray(normal(*shape, seed=seed)) for name, shape in inputs.items()} for seed in range(8))
    return [{name: values.astype(np.float32) for name, values in one.items()} for one in made]


def quantized(proto: onnx.ModelProto, recipe: Recipe | None = None) -> QdqModel:
    imported = import_model(proto)
    return quantize(imported, samples(imported), recipe)


@pytest.mark.parametrize("preset", ["auto", "a8w8", "a16w8", "a16w4"])
@pytest.mark.parametrize("name", GRAPHS)
def test_numbers_stay_near(name: str, preset: str) -> None:
    proto = model(name)
    qdq = quantized(proto, Recipe.preset(preset))
    onnx.checker.check_model(ir.to_proto(qdq.model))
    feeds = samples(import_model(proto))[0]
    given = {value.name for value in proto.graph.input}
    used = {name: values for name, values in feeds.items() if name in given}
    found = outputs(qdq.model, {str(v.name): used[str(v.name)] for v in qdq.model.graph.inputs})
    for exact, rough in zip(outputs(proto, used), found, strict=True):
        assert exact.shape == rough.shape
        tolerance = 0.3 if preset.endswith("w4") else 0.05
        assert np.abs(exact - rough).max(initial=0) <= tolerance * np.abs(exact).max(initial=0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["an empty slice joined", "arithmetic on nothing", "constant values", "a batch"])
def test_every_observer_has_a_range(name: str, method: str) -> None:
    proto = model(name)
    qdq = quantized(proto, Recipe(method=method, mixed=False))
    assert all(np.isfinite(span).all() for span in qdq.ranges.values())


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("name", "constant"), [("a batch of rows", "wm"), ("a batch of rows", "bm"), ("a batch", "w")])
def test_weights_that_are_no_numbers_stay_float_or_are_told(name: str, constant: str, bad: float) -> None:
    proto = model(name)
    (tensor,) = (tensor for tensor in proto.graph.initializer if tensor.name == constant)
    values = numpy_helper.to_array(tensor).copy()
    values.flat[0] = bad
    tensor.CopyFrom(numpy_helper.from_array(values, constant))
    with pytest.raises(CalibrationError, match=r"tensor '.*': holds (NaN|infinity) in calibration sample 0"):
        quantized(proto)
