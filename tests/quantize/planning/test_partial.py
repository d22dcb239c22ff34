"""Models that came with some Q and DQ: those are kept to the bit, the float rest is quantized around them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper

from hexqdq.app.convert import quantize_model
from hexqdq.import_.pipeline import import_model
from hexqdq.qtypes import QType
from hexqdq.quantize.pipeline import quantize
from hexqdq.quantize.planning.given import is_restored_constant
from hexqdq.quantize.product import QdqModel
from hexqdq.quantize.recipe import Recipe
from tests.import_.models import outputs, parse
from tests.quantize.graphs import CONSTANTS, normal, samples

Array = NDArray[Any]
PLAIN = Recipe(mixed=False, bias_correct=False)
HELD: dict[str, Array] = {
    **{name: CONSTANTS[name] for name in ("w", "b", "flat", "half")},
    "s1": np.array(0.03, np.float32),
    "z1": np.array(120, np.uint8),
    "s2": np.array(0.05, np.float32),
    "z2": np.array(135, np.uint8),
    "s3": np.array(0.0001, np.float32),
    "z3": np.array(30000, np.uint16),
    "sw": np.array([0.01, 0.02, 0.015, 0.012], np.float32),
    "zw": np.zeros(4, np.int8),
    "wq": np.random.default_rng(0).integers(-90, 90, (4, 3, 3, 3)).astype(np.int8),
    "w2": normal(2, 4, 1, 1, seed=9),
    "b2": normal(2, seed=8),
}
IMAGE = "float[1,3,6,6] x"
PAIR = "q = QuantizeLinear({0}, s{1}, z{1}) {2} = DequantizeLinear(q, s{1}, z{1})"
WHOLE = f"""({IMAGE}) => (float[1,4,4,4] y) {{
    xq = QuantizeLinear(x, s1, z1) xr = DequantizeLinear(xq, s1, z1) wr = DequantizeLinear <axis = 0> (wq, sw, zw)
    c = Conv(xr, wr, b) r = Relu(c) rq = QuantizeLinear(r, s2, z2) y = DequantizeLinear(rq, s2, z2) }}"""
GRAPHS = {
    "conv, then float": f"""({IMAGE}) => (float[1,2,4,4] y) {{
        xq = QuantizeLinear(x, s1, z1) xr = DequantizeLinear(xq, s1, z1) wr = DequantizeLinear <axis = 0> (wq, sw, zw)
        c = Conv(xr, wr, b) r = Relu(c) rq = QuantizeLinear(r, s2, z2) rr = DequantizeLinear(rq, s2, z2)
        y = Conv(rr, w2, b2) }}""",
    "float, then conv": f"""({IMAGE}) => (float[1,4,4,4] y) {{
        n = Neg(x) nq = QuantizeLinear(n, s1, z1) nr = DequantizeLinear(nq, s1, z1)
        wr = DequantizeLinear <axis = 0> (wq, sw, zw) c = Conv(nr, wr, b) y = Neg(c) }}""",
    "a branch before the Q": f"""({IMAGE}) => (float[1,3,6,6] y) {{
        n = Neg(x) nq = QuantizeLinear(n, s1, z1) nr = DequantizeLinear(nq, s1, z1) t = Tanh(nr) y = Add(n, t) }}""",
    "a Reshape of what a DQ gives": f"""({IMAGE}) => (float[1,108] y) {{
        xq = QuantizeLinear(x, s1, z1) xr = DequantizeLinear(xq, s1, z1) f = Flatten(xr) y = Mul(f, half) }}""",
    "a Concat of two": f"""({IMAGE}, float[1,3,6,6] v) => (float[1,6,6,6] y) {{
        xq = QuantizeLinear(x, s1, z1) xr = DequantizeLinear(xq, s1, z1)
        vq = QuantizeLinear(v, s2, z2) vr = DequantizeLinear(vq, s2, z2) y = Concat <axis = 1> (xr, vr) }}""",
    "weights only": f"""({IMAGE}) => (float[1,4,4,4] y) {{
        wr = DequantizeLinear <axis = 0> (wq, sw, zw) c = Conv(x, wr, b) y = Relu(c) }}""",
    "sixteen bits": f"""({IMAGE}) => (float[1,3,6,6] y) {{
        n = Neg(x) nq = QuantizeLinear(n, s3, z3) nr = DequantizeLinear(nq, s3, z3) y = Tanh(nr) }}""",
    "moved weights": f"""({IMAGE}) => (float[1,4,4,4] y) {{
        wr = DequantizeLinear <axis = 0> (wq, sw, zw) wt = Transpose <perm = [0, 1, 3, 2]> (wr)
        c = Conv(x, wt, b) y = Relu(c) }}""",
    "weights through a Q": f"""({IMAGE}) => (float[1,4,4,4] y) {{
        wq0 = QuantizeLinear <axis = 0> (w, sw, zw) wr = DequantizeLinear <axis = 0> (wq0, sw, zw)
        xq = QuantizeLinear(x, s1, z1) xr = DequantizeLinear(xq, s1, z1) c = Conv(xr, wr, b) y = Relu(c) }}""",
    "only some of a Split": f"""({IMAGE}) => (float[1,3,6,3] y) {{
        a, c = Split <axis = 3, num_outputs = 2> (x) aq = QuantizeLinear(a, s1, z1)
        ar = DequantizeLinear(aq, s1, z1) y = Add(ar, c) }}""",
}


def model(body: str) -> onnx.ModelProto:
    made = parse(f"m {body}", 21)
    used = {name for node in made.graph.node for name in node.input}
    made.graph.initializer.extend(numpy_helper.from_array(HELD[name], name) for name in sorted(used & set(HELD)))
    return made


def quantized(name: str, recipe: Recipe = PLAIN) -> QdqModel:
    imported = import_model(model(GRAPHS[name]))
    return quantize(imported, samples(imported), recipe)


def qdq_nodes(made: ir.Model | onnx.ModelProto) -> dict[str, tuple[str, ...]]:
    """The Q and DQ by output name: op type, inputs and the bits of their constants."""
    graph = (made if isinstance(made, onnx.ModelProto) else ir.to_proto(made)).graph
    held = {tensor.name: numpy_helper.to_array(tensor).tobytes().hex() for tensor in graph.initializer}
    nodes = [node for node in graph.node if node.op_type.endswith("eLinear")]
    return {
        node.output[0]: (node.op_type, *(held.get(name, name) for name in node.input), str(node.attribute))
        for node in nodes
    }


@pytest.mark.parametrize("recipe", [PLAIN, Recipe(), Recipe(activations=QType.U16, mixed=False)])
@pytest.mark.parametrize("name", GRAPHS)
def test_what_was_there_is_kept_to_the_bit(name: str, recipe: Recipe) -> None:
    before, after = qdq_nodes(model(GRAPHS[name])), qdq_nodes(quantized(name, recipe).model)
    assert {key: after.get(key) for key in before} == before


@pytest.mark.parametrize("name", GRAPHS)
def test_nothing_is_left_in_float(name: str) -> None:
    qdq = quantized(name)
    assert qdq.decisions == ()
    for node in qdq.model.graph:
        if node.op_type.endswith("eLinear") or is_restored_constant(node.outputs[0]):
            continue
        sources = [value.producer() for value in node.inputs if value is not None and value.dtype == ir.DataType.FLOAT]
        folds = node.op_type == "Relu"
        restored = (source is None or source.op_type in ("DequantizeLinear", "Transpose") for source in sources)
        assert folds or all(restored), node
        for value in node.outputs:
            readers = {use.node.op_type for use in value.uses()} - {"Relu"}
            assert readers <= {"QuantizeLinear"} and not value.is_graph_output()


@pytest.mark.parametrize("name", GRAPHS)
def test_numbers_stay_near(name: str) -> None:
    proto = model(GRAPHS[name])
    feeds = samples(import_model(proto))[0]
    (exact,), (found,) = outputs(proto, feeds), outputs(quantized(name).model, feeds)
    assert np.abs(exact - found).max() <= 0.03 * np.abs(exact).max()


def test_no_pair_is_written_beside_one_that_is_there() -> None:
    qdq = quantized("conv, then float")
    count = sum(node.op_type == "QuantizeLinear" for node in qdq.model.graph)
    assert count == 3  # x, r as they were, and y


def test_a_branch_before_a_quantizer_reads_what_it_makes() -> None:
    (add,) = (node for node in quantized("a branch before the Q").model.graph if node.op_type == "Add")
    assert add.inputs[0] is not None and add.inputs[0].name == "nr"


def test_a_movement_takes_the_parameters_of_what_it_reads() -> None:
    held = qdq_nodes(quantized("a Reshape of what a DQ gives").model)
    assert held["f_quantized"][2:4] == held["xq"][2:4]


def test_a_bias_beside_quantized_weights_has_the_scale_of_the_products() -> None:
    (conv,) = (node for node in quantized("weights only").model.graph if node.op_type == "Conv")
    scales = []
    for value in conv.inputs:
        producer = value.producer() if value is not None else None
        assert producer is not None and producer.inputs[1] is not None and producer.inputs[1].const_value is not None
        scales.append(producer.inputs[1].const_value.numpy())
    np.testing.assert_array_equal(scales[2], scales[0] * scales[1])


@pytest.mark.parametrize("body", [WHOLE])
def test_a_model_without_float_rest_passes_unchanged(body: str) -> None:
    imported = import_model(model(body))
    qdq = quantize(imported, samples(imported), Recipe())
    assert qdq.model is imported.model and qdq.ranges == {}
    assert quantize(imported, iter(()), Recipe()).model is imported.model


def test_a_model_that_was_quantized_here_passes_unchanged() -> None:
    first = quantized("conv, then float")
    again = import_model(ir.to_proto(first.model))
    assert quantize(again, iter(())).model is again.model


def test_the_application_completes_a_model() -> None:
    proto = model(GRAPHS["conv, then float"])
    qdq = quantize_model(proto, samples(import_model(proto)), PLAIN)
    assert isinstance(qdq, QdqModel) and "y" in qdq.ranges
