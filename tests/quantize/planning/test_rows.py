"""Every op that has a row is quantized: read through DQ, followed by Q, its numbers near the float ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper

from hexqdq.import_.pipeline import import_model
from hexqdq.ops import OPS, QUANTIZED_ONLY
from hexqdq.quantize.pipeline import quantize
from hexqdq.quantize.product import QdqModel
from hexqdq.quantize.recipe import Recipe
from tests.import_.models import outputs, parse

Array = NDArray[Any]
QDQ = ("QuantizeLinear", "DequantizeLinear")
HIDDEN, DATA = 6, 5


def _normal(*shape: int, seed: int, scale: float = 1.0) -> Array:
    return (scale * np.random.default_rng(seed).normal(size=shape)).astype(np.float32)


CONSTANTS: dict[str, Array] = {
    "g": np.abs(_normal(8, seed=1)) + 0.5,
    "b": _normal(8, seed=2),
    "gc": np.abs(_normal(6, seed=3)) + 0.5,
    "bc": _normal(6, seed=4),
    "table": _normal(20, 8, seed=5),
    "one": np.array(1, np.float32),
    "half": np.array(0.5, np.float32),
    "low": np.array(-2, np.float32),
    "zero": np.array(0, np.float32),
    "top": np.array([3], np.int64),
    "last": np.array([-1], np.int64),
    "middle": np.array(1, np.int64),
    "wide": np.array([3, 2, 6, 8], np.int64),
    "tiles": np.array([1, 2, 1], np.int64),
    "picked": np.array([5, 0, 2], np.int64),
    "places": np.array([[[0, 1], [1, 3]]], np.int64),
    "rows": _normal(1, 2, 8, seed=6),
    "w3": _normal(1, 3 * HIDDEN, DATA, seed=7, scale=0.5),
    "r3": _normal(1, 3 * HIDDEN, HIDDEN, seed=8, scale=0.3),
    "b3": _normal(1, 6 * HIDDEN, seed=9, scale=0.3),
    "w4": _normal(2, 4 * HIDDEN, DATA, seed=10, scale=0.5),
    "r4": _normal(2, 4 * HIDDEN, HIDDEN, seed=11, scale=0.3),
    "b4": _normal(2, 8 * HIDDEN, seed=12, scale=0.3),
    "w1": _normal(1, HIDDEN, DATA, seed=13, scale=0.5),
    "r1": _normal(1, HIDDEN, HIDDEN, seed=14, scale=0.3),
}
X = "float[2,6,8] x"
GRAPHS: dict[str, str] = {
    "LayerNormalization": f"({X}) => (float[2,6,8] y) {{ y = LayerNormalization <axis = -1> (x, g, b) }}",
    "InstanceNormalization": f"({X}) => (float[2,6,8] y) {{ y = InstanceNormalization (x, gc, bc) }}",
    "RMSNormalization": f"({X}) => (float[2,6,8] y) {{ y = RMSNormalization (x, g) }}",
    "GroupNormalization": f"({X}) => (float[2,6,8] y) {{ y = GroupNormalization <num_groups = 3> (x, gc, bc) }}",
    "LpNormalization": f"({X}) => (float[2,6,8] y) {{ y = LpNormalization <axis = -1> (x) }}",
    "LogSoftmax": f"({X}) => (float[2,6,8] y) {{ y = LogSoftmax (x) }}",
    "Gelu": f"({X}) => (float[2,6,8] y) {{ y = Gelu (x) }}",
    "Erf": f"({X}) => (float[2,6,8] y) {{ y = Erf (x) }}",
    "Sqrt": f"({X}) => (float[2,6,8] y) {{ a = Abs(x) y = Sqrt (a) }}",
    "Reciprocal": f"({X}) => (float[2,6,8] y) {{ a = Abs(x) p = Add(a, one) y = Reciprocal (p) }}",
    "Log": f"({X}) => (float[2,6,8] y) {{ a = Abs(x) p = Add(a, one) y = Log (p) }}",
    "Floor": f"({X}) => (float[2,6,8] y) {{ p = Mul(x, half) z = Floor (p) y = Add(z, x) }}",
    "Div": f"({X}) => (float[2,6,8] y) {{ a = Abs(x) p = Add(a, one) y = Div (x, p) }}",
    "Pow": f"({X}, float[1] e) => (float[2,6,8] y) {{ a = Abs(x) f = Abs(e) y = Pow (a, f) }}",
    "Max": f"({X}, float[1,6,1] z) => (float[2,6,8] y) {{ y = Max (x, z, half) }}",
    "Min": f"({X}, float[1,6,1] z) => (float[2,6,8] y) {{ y = Min (z, x) }}",
    "Where": f"({X}, bool[2,6,8] c) => (float[2,6,8] y) {{ y = Where (c, x, low) }}",
    "Where of constants": "(bool[2,6,8] c) => (float[2,6,8] y) { y = Where (c, zero, low) }",
    "Gather of a table": "(int64[2,6] i) => (float[2,6,8] y) { e = Gather (table, i) y = Mul(e, half) }",
    "Gather": f"({X}) => (float[2,3,8] y) {{ h = Gather <axis = 1> (x, picked) y = Mul(h, half) }}",
    "ScatterND": f"({X}) => (float[2,6,8] y) {{ h = ScatterND (x, places, rows) y = Mul(h, half) }}",
    "Expand": f"({X}) => (float[3,2,6,8] y) {{ h = Expand (x, wide) y = Mul(h, half) }}",
    "Tile": f"({X}) => (float[2,12,8] y) {{ h = Tile (x, tiles) y = Mul(h, half) }}",
    "ReduceSum": f"({X}) => (float[2,6,1] y) {{ y = ReduceSum (x, last) }}",
    "ReduceL2": f"({X}) => (float[2,6,1] y) {{ y = ReduceL2 (x, last) }}",
    "ReduceMax": f"({X}) => (float[2,6,1] y) {{ t = ReduceMax (x, last) y = Mul(t, half) }}",
    "GlobalMaxPool": f"({X}) => (float[2,6,1] y) {{ t = GlobalMaxPool (x) y = Mul(t, half) }}",
    "TopK": f"({X}) => (float[2,6,3] y, int64[2,6,3] i) {{ v, i = TopK (x, top) y = Mul(v, half) }}",
    "CumSum": f"({X}) => (float[2,6,8] y) {{ y = CumSum (x, middle) }}",
    "Less": f"({X}) => (bool[2,6,8] y) {{ y = Less (x, low) }}",
    "IsNaN": f"({X}) => (float[2,6,8] y) {{ s = Softmax (x) n = IsNaN (s) y = Where(n, zero, s) }}",
    "GRU": f"""(float[4,2,{DATA}] x, float[1,2,{HIDDEN}] h) => (float[4,1,2,{HIDDEN}] y, float[1,2,{HIDDEN}] k) {{
        y, k = GRU <hidden_size = {HIDDEN}, linear_before_reset = 1> (x, w3, r3, b3, , h) }}""",
    "LSTM": f"""(float[4,2,{DATA}] x, float[2,2,{HIDDEN}] h, float[2,2,{HIDDEN}] c)
        => (float[4,2,2,{HIDDEN}] y, float[2,2,{HIDDEN}] hn, float[2,2,{HIDDEN}] cn) {{
        y, hn, cn = LSTM <hidden_size = {HIDDEN}, direction = "bidirectional"> (x, w4, r4, b4, , h, c) }}""",
    "LSTM without states": f"""(float[4,2,{DATA}] x) => (float[4,2,2,{HIDDEN}] y) {{
        y = LSTM <hidden_size = {HIDDEN}, direction = "bidirectional"> (x, w4, r4) }}""",
    "RNN": f"(float[4,2,{DATA}] x) => (float[1,2,{HIDDEN}] k) {{ , k = RNN <hidden_size = {HIDDEN}> (x, w1, r1) }}",
}


def model(name: str) -> onnx.ModelProto:
    made = parse(f"m {GRAPHS[name]}", 23)
    used = {value for node in made.graph.node for value in node.input}
    made.graph.initializer.extend(numpy_helper.from_array(CONSTANTS[n], n) for n in sorted(used & set(CONSTANTS)))
    return made


def feeds(proto: onnx.ModelProto, seed: int) -> dict[str, Array]:
    generator = np.random.default_rng(seed)
    made: dict[str, Array] = {}
    for value in proto.graph.input:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        match value.type.tensor_type.elem_type:
            case onnx.TensorProto.FLOAT:
                made[value.name] = generator.normal(size=shape).astype(np.float32)
            case onnx.TensorProto.BOOL:
                made[value.name] = generator.random(shape) < 0.5
            case _:
                made[value.name] = generator.integers(0, 20, shape)
    return made


def quantized(name: str, recipe: Recipe | None = None) -> QdqModel:
    proto = model(name)
    return quantize(import_model(proto), [feeds(proto, seed) for seed in range(8)], recipe)


def of_type(qdq: QdqModel, op_type: str) -> ir.Node:
    (found,) = (node for node in qdq.model.graph if node.op_type == op_type)
    return found


def params(value: ir.Value | None) -> tuple[Array, Array]:
    """Scale and zero point of a value's Q or DQ."""
    assert value is not None
    readers = [use.node for use in value.uses() if use.node.op_type == "QuantizeLinear"]
    node = value.producer()
    node = readers[0] if readers else node
    assert node is not None and node.op_type in QDQ
    held = [one.const_value for one in node.inputs[1:3] if one is not None]
    scale, zero_point = (tensor.numpy() for tensor in held if tensor is not None)
    return scale, zero_point


@pytest.mark.parametrize("name", GRAPHS)
def test_nothing_is_left_in_float(name: str) -> None:
    qdq = quantized(name)
    assert qdq.decisions == ()
    for node in qdq.model.graph:
        if node.op_type in QDQ:
            continue
        for value in node.inputs:
            if value is not None and value.dtype == ir.DataType.FLOAT:
                source = value.producer()
                assert source is not None and source.op_type == "DequantizeLinear", (node.op_type, value.name)
        for value in node.outputs:
            if value.name and value.dtype == ir.DataType.FLOAT and value.uses():
                assert {use.node.op_type for use in value.uses()} == {"QuantizeLinear"}, node.op_type


@pytest.mark.parametrize("name", GRAPHS)
def test_numbers_stay_near(name: str) -> None:
    proto, qdq = model(name), quantized(name)
    sample = feeds(proto, 3)
    for exact, found in zip(outputs(proto, sample), outputs(qdq.model, sample), strict=True):
        assert exact.shape == found.shape
        if exact.dtype == np.float32:
            assert np.abs(exact - found).max() <= 0.05 * max(float(np.abs(exact).max()), 1.0)
        else:
            assert (exact == found).mean() >= 0.9


@pytest.mark.parametrize("name", ["GRU", "LSTM", "LSTM without states", "LayerNormalization", "Gather of a table"])
def test_onnxruntime_reads_it_with_its_own_rewriting(name: str) -> None:
    proto, qdq = model(name), quantized(name)
    sample = feeds(proto, 4)
    optimized = onnxruntime.InferenceSession(
        ir.to_proto(qdq.model).SerializeToString(), providers=["CPUExecutionProvider"]
    ).run(None, sample)
    for plain, found in zip(outputs(qdq.model, sample), optimized, strict=True):
        assert np.abs(plain - found).max() <= 1.01 * float(params_of_output(qdq).max())


def params_of_output(qdq: QdqModel) -> Array:
    values = [value.producer() for value in qdq.model.graph.outputs]
    held = [node.inputs[1] for node in values if node is not None and node.op_type == "DequantizeLinear"]
    return np.array([v.const_value.numpy() for v in held if v is not None and v.const_value is not None])


def test_rows_without_a_form_are_all_tried_or_like_one_that_is() -> None:
    """A row of its own kind has a graph of its own."""
    tried = {name.split()[0] for name in GRAPHS}
    kinds = {(row.trait, row.data_inputs, row.variadic) for row in QUANTIZED_ONLY if row.op_type in tried}
    assert {(row.trait, row.data_inputs, row.variadic) for row in QUANTIZED_ONLY} <= kinds


def test_states_share_their_parameters() -> None:
    lstm = of_type(quantized("LSTM"), "LSTM")
    hidden, cell = params(lstm.inputs[5]), params(lstm.inputs[6])
    assert params(lstm.outputs[0]) == params(lstm.outputs[1]) == hidden
    assert params(lstm.outputs[2]) == cell != hidden
    gru = of_type(quantized("GRU"), "GRU")
    assert params(gru.outputs[0]) == params(gru.outputs[1]) == params(gru.inputs[5])


def test_weights_of_a_recurrence_have_a_scale_a_row_and_the_bias_that_of_the_products() -> None:
    gru = of_type(quantized("GRU"), "GRU")
    rows = [params(gru.inputs[position]) for position in (1, 2, 3)]
    assert [scale.shape for scale, _ in rows] == [(3 * HIDDEN,), (3 * HIDDEN,), (6 * HIDDEN,)]
    assert [zero.dtype.name for _, zero in rows] == ["int8", "int8", "int32"]
    data, state = params(gru.inputs[0])[0], params(gru.inputs[5])[0]
    np.testing.assert_array_equal(rows[2][0], np.concatenate([data * rows[0][0], state * rows[1][0]]))


def test_weights_of_a_recurrence_per_tensor() -> None:
    gru = of_type(quantized("GRU", Recipe(per_channel=False)), "GRU")
    assert [params(gru.inputs[position])[0].shape for position in (1, 2)] == [(), ()]
    assert len(set(params(gru.inputs[3])[0])) == 2


def test_scale_and_shift_of_a_norm() -> None:
    norm = of_type(quantized("LayerNormalization"), "LayerNormalization")
    (scale, zero), (bias_scale, bias_zero) = params(norm.inputs[1]), params(norm.inputs[2])
    assert (zero.dtype.name, bias_zero.dtype.name, scale.shape) == ("int8", "int32", ())
    assert bias_scale == params(norm.inputs[0])[0] * scale


def test_a_table_is_stored_in_the_scale_of_what_is_taken_from_it() -> None:
    gather = of_type(quantized("Gather of a table"), "Gather")
    assert params(gather.inputs[0]) == params(gather.outputs[0])
    table = gather.inputs[0].producer() if gather.inputs[0] is not None else None
    assert table is not None and table.inputs[0] is not None and table.inputs[0].dtype == ir.DataType.UINT8


def test_an_op_with_an_integer_form_has_one_row() -> None:
    assert not set(OPS) & {row.op_type for row in QUANTIZED_ONLY if not row.domain}
