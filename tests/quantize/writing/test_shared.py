"""Constants that several nodes read: every use is quantized, with a bias of its own, under names of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import numpy_helper

from hexqdq.import_.pipeline import import_model
from hexqdq.qtypes import QType
from hexqdq.quantize.pipeline import quantize
from hexqdq.quantize.product import QdqModel
from hexqdq.quantize.recipe import Recipe
from tests.import_.models import outputs, parse
from tests.quantize.graphs import model, normal, samples
from tests.quantize.planning.test_rows import params

PLAIN = Recipe(mixed=False, bias_correct=False, smooth=False)
PAIR = """m (float[1,3,6,6] u, float[1,3,6,6] v) => (float[1,4,4,4] y) {
    a = Conv(u, w, b) c = Conv(v, w, b) y = Add(a, c) }"""


def fed(proto: onnx.ModelProto, wide: float = 1.0) -> list[dict[str, Any]]:
    """Samples whose second input is ``wide`` times as large."""
    made = samples(import_model(proto))
    return [{name: values * (wide if name == "v" else 1) for name, values in one.items()} for one in made]


def made(proto: onnx.ModelProto, feeds: list[dict[str, Any]], recipe: Recipe = PLAIN) -> QdqModel:
    return quantize(import_model(proto), feeds, recipe)


def nodes(qdq: QdqModel, op_type: str) -> list[ir.Node]:
    return [node for node in qdq.model.graph if node.op_type == op_type]


def stored(node: ir.Node, index: int) -> ir.Value:
    """The integers that a node's constant input is made of."""
    value = node.inputs[index]
    producer = value.producer() if value is not None else None
    assert producer is not None and producer.op_type == "DequantizeLinear" and producer.inputs[0] is not None
    return producer.inputs[0]


def test_tied_weights_are_stored_once_and_read_by_every_use() -> None:
    qdq = made(model(PAIR), fed(model(PAIR)))
    first, second = nodes(qdq, "Conv")
    assert stored(first, 1) is stored(second, 1) and first.inputs[1] is not second.inputs[1]
    assert "w" not in qdq.model.graph.initializers


@pytest.mark.parametrize("activations", [QType.U8, QType.U16])
def test_a_shared_bias_has_the_scale_of_each_product(activations: QType) -> None:
    recipe = Recipe(mixed=False, bias_correct=False, smooth=False, activations=activations)
    proto = model(PAIR)
    feeds = fed(proto, wide=50.0)
    qdq = made(proto, feeds, recipe)
    for node in nodes(qdq, "Conv"):
        (data, _), (weight, _), (bias, _) = (params(value) for value in node.inputs)
        np.testing.assert_array_equal(bias, data * weight)
    (exact,), (found,) = outputs(proto, feeds[0]), outputs(qdq.model, feeds[0])
    assert np.abs(exact - found).max() <= 0.02 * np.abs(exact).max()


def test_a_table_that_is_weights_too_is_quantized_in_both() -> None:
    text = """m (int64[2,3] i, float[2,8] x) => (float[2,3,8] e, float[2,8] y) {
        g = Gather(table, i) e = Relu(g) y = MatMul(x, table) }"""
    proto = parse(text)
    proto.graph.initializer.append(numpy_helper.from_array(normal(8, 8, seed=5), "table"))
    feeds = [{"i": np.array([[0, 1, 2], [5, 6, 7]]), "x": normal(2, 8, seed=seed)} for seed in range(4)]
    qdq = made(proto, feeds)
    (gather,), (matmul,) = nodes(qdq, "Gather"), nodes(qdq, "MatMul")
    assert stored(gather, 0).dtype == ir.DataType.UINT8 and stored(matmul, 1).dtype == ir.DataType.INT8
    assert "table" not in qdq.model.graph.initializers and qdq.decisions == ()
    for exact, found in zip(outputs(proto, feeds[0]), outputs(qdq.model, feeds[0]), strict=True):
        assert np.abs(exact - found).max() <= 0.03 * np.abs(exact).max()


def test_new_names_avoid_those_of_the_model() -> None:
    """The model uses every name that would be given."""
    proto = parse(
        """m (float[1,3,6,6] x) => (float[1,4,4,4] y) {
        x_quantized = Neg(x) x_dequantized = Neg(x_quantized) x_scale = Neg(x_dequantized)
        Conv_y_weight_quantized = Neg(x_scale) Conv_y_bias = Neg(Conv_y_weight_quantized)
        y_float = Neg(Conv_y_bias) y = Conv(y_float, w, b) }"""
    )
    held = {t.name: t for t in model(PAIR).graph.initializer}
    proto.graph.initializer.extend([held["w"], held["b"]])
    qdq = made(proto, samples(import_model(proto)))
    onnx.checker.check_model(ir.to_proto(qdq.model))
    names = [str(v.name) for node in qdq.model.graph for v in node.outputs]
    names += [*qdq.model.graph.initializers, "x"]
    assert len(set(names)) == len(names)
    (exact,), (found,) = (outputs(m, samples(import_model(proto))[0]) for m in (proto, qdq.model))
    assert np.abs(exact - found).max() <= 0.05 * np.abs(exact).max()


def test_new_names_avoid_those_of_inner_graphs() -> None:
    inner = parse("i () => (float[2,4] r) { h_quantized = Cos(h) r = Sin(h_quantized) }").graph
    for value in inner.output:
        value.ClearField("type")
    proto = parse("m (float[2,4] x, bool c) => (float[2,4] y) { h = Neg(x) y = Identity(h) }")
    proto.graph.node[-1].CopyFrom(
        onnx.helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner, name="choice")
    )
    feeds = [{"x": normal(2, 4, seed=seed), "c": np.array(seed % 2 == 0)} for seed in range(4)]
    qdq = made(proto, feeds)
    onnx.checker.check_model(ir.to_proto(qdq.model))
    (exact,), (found,) = (outputs(m, feeds[0]) for m in (proto, qdq.model))
    assert np.abs(exact - found).max() <= 0.05


@pytest.mark.parametrize("weights", [QType.S8, QType.S4, QType.S16])
@pytest.mark.parametrize("activations", [QType.U8, QType.U16])
def test_biases_that_pass_32_bits_widen_the_scale(activations: QType, weights: QType) -> None:
    """A bias of 1000 beside weights of 1e-7."""
    proto = parse(
        """m (float[1,3,6,6] x, float[3,8] z, float[4,2,5] s) => (float[1,4,4,4] y, float[3,5] g, float[3,8] n,
        float[4,1,2,6] t) {
        y = Conv(x, w, b) g = Gemm(z, wg, bg) n = LayerNormalization(z, wn, bn)
        t = GRU <hidden_size = 6> (s, w3, r3, b3) }"""
    )
    tiny, large = 1e-7, 1e3
    shapes: dict[str, tuple[tuple[int, ...], float]] = {
        "w": ((4, 3, 3, 3), tiny), "b": ((4,), large), "wg": ((8, 5), tiny), "bg": ((5,), large),
        "wn": ((8,), tiny), "bn": ((8,), large),
        "w3": ((1, 18, 5), tiny), "r3": ((1, 18, 6), tiny), "b3": ((1, 36), 5.0),
    }  # fmt: skip
    for seed, (name, (shape, scale)) in enumerate(shapes.items()):
        proto.graph.initializer.append(numpy_helper.from_array(normal(*shape, seed=seed, scale=scale), name))
    feeds = samples(import_model(proto))
    recipe = Recipe(mixed=False, bias_correct=False, smooth=False, activations=activations, weights=weights)
    qdq = made(proto, feeds, recipe)
    for exact, found in zip(outputs(proto, feeds[0]), outputs(qdq.model, feeds[0]), strict=True):
        assert np.abs(exact - found).max() <= 0.01 * np.abs(exact).max()
