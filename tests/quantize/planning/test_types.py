"""Element types of activations: one a tensor group, converted copies where types meet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import onnx_ir as ir
import pytest
from onnx import numpy_helper

from hexqdq.import_.pipeline import import_model
from hexqdq.qtypes import QType, QuantParams
from hexqdq.quantize.draft import Draft
from hexqdq.quantize.pipeline import assemble, quantize
from hexqdq.quantize.planning.encodings import converted
from hexqdq.quantize.product import QdqModel
from hexqdq.quantize.recipe import Recipe
from tests.import_.models import outputs, parse
from tests.quantize.graphs import model, quantized, samples
from tests.quantize.planning.test_rows import CONSTANTS, GRAPHS, feeds, params
from tests.quantize.planning.test_rows import model as row_model
from tests.quantize.planning.test_rows import quantized as row_quantized

WIDE = Recipe(activations=QType.U16)
TWO = "m (float[2,4] x) => (float[2,5] y) { a = MatMul(x, wm) s = Sigmoid(a) t = Tanh(a) y = Add(s, t) }"


def mixed(text: str, types: Mapping[str, QType]) -> QdqModel:
    """The model with some groups of other types than u8."""
    imported = import_model(model(text))
    recipe = Recipe(bias_correct=False, smooth=False)
    known = quantize(imported, samples(imported), recipe)
    draft = Draft(imported, recipe, known.ranges, known.wide_ranges)
    return assemble(replace(draft, types=types))


def read_types(qdq: QdqModel, op_type: str) -> list[str]:
    """The integer types that the computed inputs of an op's nodes are read in."""
    nodes = [node for node in qdq.model.graph if node.op_type == op_type]
    return [params(value)[1].dtype.name for node in nodes for value in node.inputs if value is not None]


def count(qdq: QdqModel, op_type: str) -> int:
    return sum(node.op_type == op_type for node in qdq.model.graph)


def test_a_node_reads_in_the_type_of_its_result() -> None:
    qdq = mixed(TWO, {"a": QType.U16})
    assert read_types(qdq, "MatMul") == ["uint16", "int8"]
    assert read_types(qdq, "Sigmoid") == read_types(qdq, "Tanh") == ["uint8"]
    assert read_types(qdq, "Add") == ["uint8", "uint8"]


def test_readers_of_one_type_share_a_copy() -> None:
    plain, qdq = mixed(TWO, {}), mixed(TWO, {"a": QType.U16})
    assert count(qdq, "QuantizeLinear") == count(plain, "QuantizeLinear") + 2  # x for MatMul, a for both readers
    (sigmoid,), (tanh,) = ([n for n in qdq.model.graph if n.op_type == op] for op in ("Sigmoid", "Tanh"))
    assert sigmoid.inputs[0] is tanh.inputs[0]


def test_a_copy_covers_the_same_range() -> None:
    qdq = mixed(TWO, {"a": QType.U16})
    (sigmoid,) = [node for node in qdq.model.graph if node.op_type == "Sigmoid"]
    (matmul,) = [node for node in qdq.model.graph if node.op_type == "MatMul"]
    (narrow, low), (wide, middle) = params(sigmoid.inputs[0]), params(matmul.outputs[0])
    assert narrow == pytest.approx(wide * 257, rel=1e-4)
    assert abs(float(low) - float(middle) / 257) <= 0.5


@pytest.mark.parametrize("dtype", [QType.U8, QType.S8, QType.S16])
def test_a_copy_of_another_sign_holds_the_same_values(dtype: QType) -> None:
    own = QuantParams.per_tensor(QType.U16, 0.01, 12345)
    other = converted(own, dtype)
    assert (other.dtype.low - other.zero_point[0]) * other.scale[0] == pytest.approx(-123.45, abs=other.scale[0])
    assert (other.dtype.high - other.zero_point[0]) * other.scale[0] == pytest.approx(531.9, abs=other.scale[0])


def test_one_value_gives_its_type_to_all_that_shares_parameters_with_it() -> None:
    text = """m (float[1,3,6,6] x) => (float[1,4,2,2] y) {
        c = Conv(x, w, b) m = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (c) r = Neg(m) y = Relu(r) }"""
    qdq = mixed(text, {"m": QType.S16})
    assert read_types(qdq, "Conv") == ["int16", "int8", "int32"]
    assert read_types(qdq, "MaxPool") == ["int16"]


def test_all_results_of_a_node_have_one_type() -> None:
    imported = import_model(row_model("LSTM"))
    fed = [feeds(row_model("LSTM"), seed) for seed in range(3)]
    known = quantize(imported, fed)
    draft = Draft(imported, Recipe(), known.ranges, known.wide_ranges, types={"cn": QType.U16})
    (lstm,) = [node for node in assemble(draft).model.graph if node.op_type == "LSTM"]
    assert {params(value)[1].dtype.name for value in lstm.outputs} == {"uint16"}
    assert {params(lstm.inputs[index])[1].dtype.name for index in (0, 5, 6)} == {"uint16"}


def test_what_gives_indices_reads_any_type() -> None:
    text = "m (float[2,4] x) => (int64[2] y) { a = MatMul(x, wm) y = ArgMax<axis=1, keepdims=0>(a) }"
    assert read_types(mixed(text, {"a": QType.U16}), "ArgMax") == ["uint16"]


@pytest.mark.parametrize(
    "text",
    [
        "m (float[2,4] x) => (bool[2,5] y) { a = MatMul(x, wm) s = Sigmoid(a) y = Greater(s, a) }",
        "m (float[2,4] x) => (bool[2,5] y) { a = MatMul(x, wm) y = Greater(a, row) }",
    ],
)
def test_a_comparison_reads_both_in_one_type(text: str) -> None:
    assert read_types(mixed(text, {"a": QType.U16}), "Greater") == ["uint16", "uint16"]


def test_inputs_and_outputs_are_stored_in_their_own_types() -> None:
    qdq = mixed("m (float[2,5] x) => (float[2,5] y) { y = Add(x, row) }", {"x": QType.S8, "y": QType.S16})
    assert read_types(qdq, "Add") == ["int16", "int16"]
    first = next(use.node for use in qdq.model.graph.inputs[0].uses())
    assert first.inputs[2] is not None and first.inputs[2].dtype == ir.DataType.INT8
    last = qdq.model.graph.outputs[0].producer()
    assert last is not None and last.inputs[0] is not None and last.inputs[0].dtype == ir.DataType.INT16


@pytest.mark.parametrize(
    ("op_type", "dtype", "scale", "zero_point"),
    [
        ("Softmax", QType.U16, 1 / 65536, 0),
        ("Sigmoid", QType.U16, 1 / 65536, 0),
        ("HardSigmoid", QType.U16, 1 / 65536, 0),
        ("Sigmoid", QType.S16, 1 / 65536, -32768),
        ("Tanh", QType.U16, 1 / 32768, 32768),
        ("Tanh", QType.S16, 1 / 32768, 0),
        ("Tanh", QType.S8, 1 / 128, 0),
    ],
)
def test_known_ranges_have_the_steps_of_their_type(op_type: str, dtype: QType, scale: float, zero_point: int) -> None:
    qdq = quantized(f"m (float[2,5] x) => (float[2,5] y) {{ y = {op_type}(x) }}", Recipe(activations=dtype))
    (node,) = (node for node in qdq.model.graph if node.op_type == op_type)
    found_scale, found_zero = params(node.outputs[0])
    assert (float(found_scale), int(found_zero)) == (float(np.float32(scale)), zero_point)


@pytest.mark.parametrize("dtype", [QType.U16, QType.S16])
@pytest.mark.parametrize("name", GRAPHS)
def test_onnxruntime_reads_sixteen_bits(name: str, dtype: QType) -> None:
    proto, qdq = row_model(name), row_quantized(name, Recipe(activations=dtype))
    assert qdq.model.graph.opset_imports[""] >= 21 and qdq.decisions == ()
    sample = feeds(proto, 3)
    weighted = {node.op_type for node in proto.graph.node} & {"GRU", "LSTM", "RNN"}
    for exact, found in zip(outputs(proto, sample), outputs(qdq.model, sample), strict=True):
        if exact.dtype == np.float32 and not weighted:
            tolerance = 0.01 if any(node.op_type.endswith("Normalization") for node in proto.graph.node) else 1e-3
            assert np.abs(exact - found).max() <= tolerance * max(float(np.abs(exact).max()), 1.0)


def test_the_bias_of_sixteen_bits_has_the_scale_of_the_products() -> None:
    qdq = quantized("m (float[1,3,6,6] x) => (float[1,4,4,4] y) { y = Conv(x, w, b) }", WIDE)
    (conv,) = [node for node in qdq.model.graph if node.op_type == "Conv"]
    (data, _), (weight, _), (bias, zero) = (params(value) for value in conv.inputs)
    np.testing.assert_array_equal(bias, data * weight)
    assert zero.dtype == np.int32


def test_a_model_that_cannot_be_raised_gets_the_ops_of_the_runtime() -> None:
    made = parse("m (float[2,6,8] x) => (float[2,6,8] y) { y = GroupNormalization <num_groups = 3> (x, g, b) }", 18)
    for name, source in (("g", "gc"), ("b", "bc")):
        made.graph.initializer.append(numpy_helper.from_array(CONSTANTS[source][:3], name))
    fed = [feeds(made, seed) for seed in range(4)]
    qdq = quantize(import_model(made), fed, WIDE)
    assert qdq.model.graph.opset_imports[""] == 18
    assert {node.domain for node in qdq.model.graph if node.op_type.endswith("Linear")} == {"com.microsoft"}
    np.testing.assert_allclose(outputs(qdq.model, fed[0])[0], outputs(made, fed[0])[0], atol=0.05)


def test_a_range_for_sixteen_bits_keeps_the_tail() -> None:
    imported = import_model(model("m (float[1000,1000] x) => (float[1000,1000] y) { y = Neg(x) }"))
    values = np.random.default_rng(0).normal(size=(1000, 1000)).astype(np.float32)
    values[0, 0] = 30.0
    found = quantize(imported, [{"x": values}])
    assert found.ranges["x"][1] < 15 and found.wide_ranges["x"][1] == 30.0
    draft = Draft(imported, Recipe(), found.ranges, found.wide_ranges, {"x": QType.U16})
    first = next(node for node in assemble(draft).model.graph if node.op_type == "QuantizeLinear")
    scale = first.inputs[1]
    assert scale is not None and scale.const_value is not None
    low = found.wide_ranges["x"][0]
    assert float(scale.const_value.numpy()) == pytest.approx((30.0 - low) / 65535)
