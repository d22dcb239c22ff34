"""Rows of weights times vectors of inputs are what the op computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from numpy.typing import NDArray

from hexqdq.qtypes import QType, QuantParams
from hexqdq.quantize.planning.graph import constant
from hexqdq.quantize.repair.rounding.layers import Layer, layer_of
from tests.import_.models import outputs, parse
from tests.quantize.graphs import normal

Array = NDArray[Any]
PARAMS = QuantParams.per_tensor(QType.U8, 1.0)
ALL = 1 << 30

CASES: dict[str, tuple[str, tuple[int, ...]]] = {
    "conv": ("m (float[2,3,7,6] x) => (float[a,b,c,d] y) { y = Conv(x, w) }", (4, 3, 3, 2)),
    "strides and pads": (
        "m (float[1,3,9,8] x) => (float[a,b,c,d] y) { y = Conv<strides=[2,1], pads=[1,0,2,3]>(x, w) }",
        (4, 3, 3, 3),
    ),
    "dilations": ("m (float[1,2,9,9] x) => (float[a,b,c,d] y) { y = Conv<dilations=[2,3]>(x, w) }", (3, 2, 2, 3)),
    "groups": ("m (float[1,6,5,5] x) => (float[a,b,c,d] y) { y = Conv<group=3>(x, w) }", (6, 2, 3, 3)),
    "depthwise": (
        "m (float[1,4,5,5] x) => (float[a,b,c,d] y) { y = Conv<group=4, pads=[1,1,1,1]>(x, w) }",
        (4, 1, 3, 3),
    ),
    "one dimension": ("m (float[2,3,11] x) => (float[a,b,c] y) { y = Conv<strides=[3]>(x, w) }", (5, 3, 4)),
    "transposed": (
        "m (float[1,3,4,5] x) => (float[a,b,c,d] y) { y = ConvTranspose<strides=[2,3]>(x, w) }",
        (3, 4, 3, 3),
    ),
    "transposed, pads": (
        "m (float[1,3,5,5] x) => (float[a,b,c,d] y) { y = ConvTranspose<strides=[2,2], pads=[1,0,1,1]>(x, w) }",
        (3, 2, 4, 3),
    ),
    "transposed, groups": (
        "m (float[1,4,5,5] x) => (float[a,b,c,d] y) { y = ConvTranspose<group=2, dilations=[2,1]>(x, w) }",
        (4, 3, 2, 3),
    ),
    "matrices": ("m (float[2,3,5] x) => (float[a,b,c] y) { y = MatMul(x, w) }", (5, 4)),
    "gemm": ("m (float[3,5] x) => (float[a,b] y) { y = Gemm(x, w) }", (5, 4)),
    "gemm, transposed": ("m (float[3,5] x) => (float[a,b] y) { y = Gemm<transB=1>(x, w) }", (4, 5)),
}


def layer(name: str) -> tuple[Layer, Array, Array, Array]:
    """The only node of a case as a layer, its weights, an input and what the node makes of it."""
    text, shape = CASES[name]
    weights = normal(*shape, seed=7)
    source = parse(text, w=weights)
    (node,) = ir.from_proto(source).graph
    found = layer_of(node, PARAMS)
    held = constant(node.inputs[1])
    assert found is not None and held is not None and node.inputs[0] is not None and node.inputs[0].shape is not None
    data = normal(*node.inputs[0].shape.numpy(), seed=8)
    return found, held, data, outputs(source, {"x": data})[0]


@pytest.mark.parametrize("name", CASES)
def test_rows_times_vectors(name: str) -> None:
    found, weights, data, expected = layer(name)
    rows, vectors = found.rows(weights), found.vectors(data, ALL, np.random.default_rng(0))
    products = np.einsum("gck,gpk->pgc", rows, vectors).reshape(len(vectors[0]), -1)
    if found.window is not None:
        expected = np.moveaxis(expected, 1, -1)
    np.testing.assert_allclose(products, expected.reshape(products.shape), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_rows_and_back(name: str) -> None:
    found, weights, _, _ = layer(name)
    np.testing.assert_array_equal(found.weights(found.rows(weights), weights.shape), weights)


@pytest.mark.parametrize("name", ["conv", "groups", "matrices"])
def test_some_places(name: str) -> None:
    found, _, data, _ = layer(name)
    every = found.vectors(data, ALL, np.random.default_rng(0))
    some = found.vectors(data, 4, np.random.default_rng(0))
    assert some.shape == (every.shape[0], 4, every.shape[2])
    assert all((every == vector[:, None]).all(axis=(0, 2)).any() for vector in np.swapaxes(some, 0, 1))


def test_weights_of_a_transposed_input_are_no_rows() -> None:
    text = "m (float[5,3] x) => (float[3,4] y) { y = Gemm<transA=1>(x, w) }"
    (node,) = ir.from_proto(parse(text, w=normal(5, 4))).graph
    assert layer_of(node, PARAMS) is None
