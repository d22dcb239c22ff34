"""Where Q and DQ go, and that the numbers stay near."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from hexqdq.errors import UsageError
from hexqdq.import_.pipeline import import_model
from hexqdq.qtypes import QType
from hexqdq.quantize.pipeline import already_quantized, is_quantized, quantize
from hexqdq.quantize.product import QdqModel
from hexqdq.quantize.recipe import Recipe
from tests.quantize.graphs import both, constants, count, model, ops, quantized, samples

IMAGE = "float[1,3,6,6] x"
GRAPHS = {
    "conv": f"m ({IMAGE}) => (float[1,4,4,4] y) {{ y = Conv(x, w, b) }}",
    "conv_without_bias": f"m ({IMAGE}) => (float[1,4,4,4] y) {{ y = Conv(x, w) }}",
    "transposed": "m (float[1,4,3,3] x) => (float[1,3,7,7] y) { y = ConvTranspose <strides = [2, 2]> (x, w) }",
    "conv_relu": f"m ({IMAGE}) => (float[1,4,4,4] y) {{ c = Conv(x, w, b) y = Relu(c) }}",
    "conv_clip": f"m ({IMAGE}) => (float[1,4,4,4] y) {{ c = Conv(x, w, b) y = Clip(c, zero, half) }}",
    "gemm": "m (float[2,4] x) => (float[2,5] y) { y = Gemm(x, wm, bm) }",
    "gemm_row": "m (float[2,4] x) => (float[2,5] y) { y = Gemm(x, wm, row) }",
    "gemm_scalar_bias": "m (float[2,4] x) => (float[2,5] y) { y = Gemm(x, wm, half) }",
    "matmul_add_relu": "m (float[2,4] x) => (float[2,5] y) { h = MatMul(x, wm) a = Add(row, h) y = Relu(a) }",
    "matmul_of_two": "m (float[2,4] x, float[4,5] v) => (float[2,5] y) { y = MatMul(x, v) }",
    "residual": f"""m ({IMAGE}) => (float[1,4,4,4] y) {{
        c = Conv(x, w, b) r = Relu(c) d = Conv(x, w) a = Add(r, d) y = Relu(a) }}""",
    "constant_addend": "m (float[2,5] x) => (float[2,5] y) { y = Add(x, row) }",
    "scalar_addend": "m (float[2,5] x) => (float[2,5] y) { y = Add(half, x) }",
    "added_to_itself": "m (float[2,5] x) => (float[2,5] y) { y = Add(x, x) }",
    "softmax": "m (float[2,5] x) => (float[2,5] y) { y = Softmax(x) }",
    "pool_and_flatten": f"""m ({IMAGE}) => (float[1,5] y) {{
        c = Conv(x, w, b) p = GlobalAveragePool(c) f = Flatten(p) y = Gemm(f, wm, bm) }}""",
    "inner_value_is_output": f"""m ({IMAGE}) => (float[1,4,4,4] c, float[1,4,4,4] y) {{
        c = Conv(x, w, b) y = Relu(c) }}""",
    "float_op_between": f"""m ({IMAGE}) => (float[1,4,4,4] y) {{
        c = Conv(x, w, b) s = Atan(c) y = Relu(s) }}""",
    "movement_first": "m (float[1,2,2] x) => (float[1,5] y) { r = Reshape(x, flat) y = MatMul(r, wm) }",
    "concat": f"""m ({IMAGE}) => (float[1,8,4,4] y) {{
        c = Conv(x, w, b) d = Conv(x, w) y = Concat <axis = 1> (c, d) }}""",
    "concat_of_constant": "m (float[1,5] x) => (float[3,5] y) { y = Concat <axis = 0> (x, row, x) m = Add(y, row) }",
    "split": """m (float[2,8] x) => (float[2,5] y, float[2,5] z) {
        a, c = Split <axis = 1> (x, fours) y = MatMul(a, wm) z = MatMul(c, wm) }""",
    "pad_and_slice": f"""m ({IMAGE}) => (float[1,4,4,4] y) {{
        p = Pad (x, pads, half) s = Slice(p, two, eight, sides) y = Conv(s, w, b) }}""",
    "resize": f'm ({IMAGE}) => (float[1,4,10,10] y) {{ r = Resize <mode = "linear"> (x, , twice) y = Conv(r, w, b) }}',
    "silu": f"""m ({IMAGE}) => (float[1,4,4,4] y) {{
        c = Conv(x, w, b) s = Sigmoid(c) y = Mul(c, s) }}""",
    "gate": f"""m ({IMAGE}) => (float[1,4,4,4] y) {{
        c = Conv(x, w, b) p = GlobalAveragePool(c) s = HardSigmoid(p) y = Mul(c, s) }}""",
    "difference": "m (float[2,5] x, float[2,5] v) => (float[2,5] y) { y = Sub(x, v) }",
    "slopes": f"""m ({IMAGE}) => (float[1,4,4,4] y) {{
        c = Conv(x, w, b) l = LeakyRelu(c) h = HardSwish(l) y = PRelu(h, slopes) }}""",
    "pools": f"""m ({IMAGE}) => (float[1,3,3,3] y) {{
        m = MaxPool <kernel_shape = [2, 2], strides = [1, 1]> (x)
        a = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]> (m) y = Tanh(a) }}""",
    "mean": f"m ({IMAGE}) => (float[1,3,1,1] y) {{ y = ReduceMean <axes = [2, 3]> (x) }}",
    "input_read_by_float_op_too": "m (float[1,4] x) => (float[1,5] y, float[1,4] n) { y = MatMul(x, wm) n = Cos(x) }",
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("activations", [QType.U8, QType.S8])
def test_numbers_stay_near(name: str, activations: QType) -> None:
    for exact, found in zip(*both(GRAPHS[name], Recipe(activations=activations)), strict=True):
        assert exact.shape == found.shape
        assert np.abs(exact - found).max() <= 0.04 * max(float(np.abs(exact).max()), 1.0)


@pytest.mark.parametrize("name", GRAPHS)
def test_interface_stays_float(name: str) -> None:
    imported, qdq = import_model(model(GRAPHS[name])), quantized(GRAPHS[name])
    for before, after in ((imported.model.graph.inputs, qdq.model.graph.inputs),
                          (imported.model.graph.outputs, qdq.model.graph.outputs)):  # fmt: skip
        assert [(v.name, v.dtype, v.shape) for v in before] == [(v.name, v.dtype, v.shape) for v in after]


@pytest.mark.parametrize("name", GRAPHS)
def test_quantizing_leaves_the_imported_model_alone(name: str) -> None:
    imported = import_model(model(GRAPHS[name]))
    before = [str(node) for node in imported.model.graph]
    quantize(imported, samples(imported))
    assert [str(node) for node in imported.model.graph] == before


@pytest.mark.parametrize(
    "name, quantizers", [("conv_relu", 2), ("conv_clip", 2), ("matmul_add_relu", 2), ("residual", 4)]
)
def test_activations_and_biases_fold(name: str, quantizers: int) -> None:
    assert count(quantized(GRAPHS[name]), "QuantizeLinear") == quantizers


def test_clamped_range_counts() -> None:
    qdq = quantized(GRAPHS["conv_clip"])
    assert qdq.ranges["y"] == (0.0, 0.5)
    assert constants(qdq)["y_zero_point"] == 0
    assert constants(qdq)["y_scale"] == np.float32(0.5 / 255)


def test_inner_output_stops_folding() -> None:
    assert count(quantized(GRAPHS["inner_value_is_output"]), "QuantizeLinear") == 3


@pytest.mark.parametrize("activations, zero_point", [(QType.U8, 0), (QType.S8, -128)])
def test_softmax_has_its_known_range(activations: QType, zero_point: int) -> None:
    held = constants(quantized(GRAPHS["softmax"], Recipe(activations=activations)))
    assert held["y_scale"] == np.float32(1 / 256) and held["y_zero_point"] == zero_point


def test_movements_share_parameters() -> None:
    qdq = quantized(GRAPHS["pool_and_flatten"])
    quantizers = {n.outputs[0].name: n for n in qdq.model.graph if n.op_type == "QuantizeLinear"}
    assert quantizers["p_quantized"].inputs[1] is quantizers["f_quantized"].inputs[1]
    assert ops(qdq) == ["Conv", "GlobalAveragePool", "Flatten", "Gemm"]


def test_weights_per_channel_and_bias_of_product_scale() -> None:
    held = constants(quantized(GRAPHS["conv"]))
    weight = next(name for name in held if name.endswith("_weight_quantized"))
    stem = weight.removesuffix("_weight_quantized")
    assert held[weight].dtype == np.int8 and "w" not in held
    assert held[f"{stem}_weight_scale"].shape == (4,)
    product = held["x_scale"] * held[f"{stem}_weight_scale"]
    np.testing.assert_array_equal(held[f"{stem}_bias_scale"], product)
    assert held[f"{stem}_bias_quantized"].dtype == np.int32


def test_per_tensor_weights() -> None:
    held = constants(quantized(GRAPHS["conv"], Recipe(per_channel=False)))
    assert [values.shape for name, values in held.items() if name.endswith("_weight_scale")] == [()]


@pytest.mark.parametrize("name", ["gemm", "matmul_add_relu"])
def test_axis_of_weights_is_the_output(name: str) -> None:
    qdq = quantized(GRAPHS[name])
    (weights,) = (n for n in qdq.model.graph if str(n.outputs[0].name).endswith("_weight_dequantized"))
    assert weights.attributes["axis"].as_int() == 1


def test_float_ops_are_decided_with_a_reason() -> None:
    qdq = quantized(GRAPHS["float_op_between"])
    (decision,) = qdq.decisions
    assert (decision.op_type, decision.segment) == ("Atan", None)
    assert "Atan is not among the ops" in str(decision.reason)


def test_float_consumer_of_an_input_reads_it_unquantized() -> None:
    qdq = quantized(GRAPHS["input_read_by_float_op_too"])
    (neg,) = (node for node in qdq.model.graph if node.op_type == "Cos")
    assert neg.inputs[0] is qdq.model.graph.inputs[0]


def test_kept_float_by_recipe() -> None:
    text = "m (float[2,5] x) => (float[2,5] y) { [first] a = Add(x, row) [last] y = Relu(a) }"
    qdq = quantized(text.replace("[first]", "").replace("[last]", ""), Recipe(keep_float=("Add_a",)))
    assert [(d.node, d.reason) for d in qdq.decisions] == [("Add_a", "the recipe keeps this node float")]
    with pytest.raises(UsageError, match="names 'nothing', which is no node"):
        quantized(GRAPHS["conv"], Recipe(keep_float=("nothing",)))


def test_float_movements_stay() -> None:
    qdq = quantized("m (float[1,2,2] x) => (float[1,4] y) { n = Cos(x) y = Reshape(n, flat) }")
    assert not is_quantized(qdq.model)
    assert {d.op_type for d in qdq.decisions} == {"Cos", "Reshape"}


def test_shared_weights_keep_a_bias_each() -> None:
    text = f"""m ({IMAGE}, float[1,3,6,6] v) => (float[1,4,4,4] y) {{
        a = Conv(x, w, b) s = Atan(a) d = Conv(v, w, b) y = Add(s, d) }}"""
    biases = [node for node in quantized(text).model.graph if str(node.name).endswith("_bias_dequantized")]
    assert len(biases) == 2


def test_quantized_model_passes_to_the_bit() -> None:
    qdq = quantized(GRAPHS["conv_relu"])
    import onnx_ir as ir

    again = import_model(ir.to_proto(qdq.model))
    assert quantize(again, iter(())).model is again.model
    assert already_quantized(again).digest == again.digest == qdq.digest


def test_new_nodes_have_an_origin() -> None:
    qdq = quantized(GRAPHS["conv_relu"])
    assert set(qdq.origin) >= {str(node.name) for node in qdq.model.graph}
    assert qdq.origin["y_quantized"] == ("Relu_y",)


def _parameters(node: ir.Node | None, qdq: QdqModel) -> tuple[float, int]:
    """Scale and zero point of a Q or DQ."""
    assert node is not None
    held = constants(qdq)
    scale, zero_point = (held[str(value.name)].item() for value in node.inputs[1:] if value is not None)
    return scale, zero_point


def _scales(qdq: QdqModel) -> dict[str, tuple[float, int]]:
    """Scale and zero point of every computed value that a Q quantizes, by the value's name."""
    quantizers = [node for node in qdq.model.graph if node.op_type == "QuantizeLinear"]
    sources = [(node.inputs[0], node) for node in quantizers]
    return {str(source.name): _parameters(node, qdq) for source, node in sources if source is not None}


def test_concat_shares_its_parameters() -> None:
    scales = _scales(quantized(GRAPHS["concat"]))
    assert len({scales[name] for name in ("c", "d", "y_float")}) == 1


def test_split_shares_its_parameters() -> None:
    scales = _scales(quantized(GRAPHS["split"]))
    assert len({scales[name] for name in ("x", "a", "c")}) == 1


def test_a_known_range_stays_apart_in_concat() -> None:
    text = """m (float[2,5] x) => (float[2,15] y) {
        s = Softmax(x) a = Add(x, row) t = Softmax(a) y = Concat <axis = 1> (s, a, t) }"""
    scales = _scales(quantized(text))
    assert scales["s"] == scales["t"] == (1 / 256, 0)
    assert scales["a"] == scales["y_float"] != (1 / 256, 0)


def test_equal_known_ranges_share_in_concat() -> None:
    text = """m (float[2,5] x) => (float[2,10] y) {
        s = Softmax(x) a = Add(x, row) t = Softmax(a) y = Concat <axis = 1> (s, t) }"""
    assert _scales(quantized(text))["y_float"] == (1 / 256, 0)


def test_the_fill_of_a_pad_gets_the_parameters_of_the_data() -> None:
    qdq = quantized(GRAPHS["pad_and_slice"])
    (pad,) = (node for node in qdq.model.graph if node.op_type == "Pad")
    data, fill = pad.inputs[0], pad.inputs[2]
    assert data is not None and fill is not None
    assert _parameters(data.producer(), qdq) == _parameters(fill.producer(), qdq)


def test_argmax_reads_quantized_data_and_gives_integers() -> None:
    qdq = quantized(f"m ({IMAGE}) => (int64[1,4,4] y) {{ c = Conv(x, w, b) y = ArgMax <axis = 1, keepdims = 0> (c) }}")
    (argmax,) = (node for node in qdq.model.graph if node.op_type == "ArgMax")
    (source,) = argmax.inputs
    producer = source.producer() if source is not None else None
    assert producer is not None and producer.op_type == "DequantizeLinear"
    assert argmax.outputs[0] is qdq.model.graph.outputs[0] and qdq.decisions == ()


@pytest.mark.parametrize(("op_type", "scale", "zero_point"), [("Sigmoid", 1 / 256, 0), ("Tanh", 1 / 128, 128)])
def test_known_ranges_are_used_where_the_group_fits_them(op_type: str, scale: float, zero_point: int) -> None:
    qdq = quantized(f"m (float[2,5] x) => (float[2,5] y) {{ y = {op_type}(x) }}")
    (node,) = (node for node in qdq.model.graph if node.op_type == op_type)
    quantizer = next(iter(node.outputs[0].uses())).node
    values = [np.asarray(value.const_value) for value in quantizer.inputs[1:] if value is not None]
    assert [float(value) for value in values] == [scale, zero_point]


def test_known_ranges_are_used_where_the_float_op_passes_them_by_an_ulp() -> None:
    """onnxruntime's own Tanh gives 1.0000001."""
    imported = import_model(model("m (float[2,5] x) => (float[2,5] y) { y = Tanh(x) }"))
    ranges = {"x": (-9.0, 9.0), "y": (-1.0000001, 1.0000001)}
    plain = Recipe(method="minmax", bias_correct=False, smooth=False, mixed=False)
    qdq = quantize(imported, None, plain, ranges=ranges)
    assert 1 / 128 in [float(values) for values in constants(qdq).values() if values.size == 1]
