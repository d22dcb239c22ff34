"""What scales and shifts channels folds into the contraction before it; numbers stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper

from hexqdq.import_.pipeline import import_model
from tests.import_.models import outputs, parse

_RANDOM = np.random.default_rng(4)


def _normal(*shape: int) -> NDArray[np.float32]:
    return _RANDOM.normal(size=shape).astype(np.float32)


_CONSTANTS: dict[str, Any] = {
    "w": _normal(4, 3, 3, 3),
    "wg": _normal(6, 2, 2, 2),
    "wt": _normal(4, 3, 2, 2),
    "wtg": _normal(4, 3, 2, 2),
    "wm": _normal(6, 4),
    "wmt": _normal(4, 6),
    "b": _normal(4),
    "gain": _normal(4),
    "shift": _normal(4),
    "mean": _normal(4),
    "variance": np.abs(_normal(4)) + np.float32(0.1),
    "gain3": _normal(3),
    "shift3": _normal(3),
    "mean3": _normal(3),
    "variance3": np.abs(_normal(3)) + np.float32(0.1),
    "gain6": _normal(6),
    "shift6": _normal(6),
    "mean6": _normal(6),
    "variance6": np.abs(_normal(6)) + np.float32(0.1),
    "planes": _normal(4, 1, 1),
    "wide": _normal(1, 1, 1, 6),
    "one": np.float32(0.5),
}
_NORM, _NORM3, _NORM6 = (
    "gain, shift, mean, variance",
    "gain3, shift3, mean3, variance3",
    "gain6, shift6, mean6, variance6",
)
_IN = "float[1,3,8,8] x"
GRAPHS: dict[str, tuple[str, list[str]]] = {
    "conv": (
        f"m ({_IN}) => (float[1,4,6,6] y) {{ c = Conv(x, w, b) y = BatchNormalization(c, {_NORM}) }}",
        ["Conv"],
    ),
    "conv_without_bias": (
        f"m ({_IN}) => (float[1,4,6,6] y) {{ c = Conv(x, w) y = BatchNormalization <epsilon = 0.01> (c, {_NORM}) }}",
        ["Conv"],
    ),
    "grouped_conv": (
        f"m (float[1,4,5,5] x) => (float[1,6,4,4] y) {{ "
        f"c = Conv <group = 2> (x, wg) y = BatchNormalization(c, {_NORM6}) }}",
        ["Conv"],
    ),
    "transposed": (
        f"m (float[1,4,5,5] x) => (float[1,3,10,10] y) {{ "
        f"c = ConvTranspose <strides = [2, 2]> (x, wt) y = BatchNormalization(c, {_NORM3}) }}",
        ["ConvTranspose"],
    ),
    "transposed_grouped": (
        f"m (float[1,4,5,5] x) => (float[1,6,10,10] y) {{ "
        f"c = ConvTranspose <group = 2, strides = [2, 2]> (x, wtg) y = BatchNormalization(c, {_NORM6}) }}",
        ["ConvTranspose"],
    ),
    "gemm": (
        f"m (float[2,6] x) => (float[2,4] y) {{ c = Gemm(x, wm, b) y = BatchNormalization(c, {_NORM}) }}",
        ["Gemm"],
    ),
    "gemm_by_rows": (
        f"m (float[2,6] x) => (float[2,4] y) {{ "
        f"c = Gemm <transB = 1, alpha = 0.5> (x, wmt, one) y = BatchNormalization(c, {_NORM}) }}",
        ["Gemm"],
    ),
    "add_and_mul": (
        f"m ({_IN}) => (float[1,4,6,6] y) {{ c = Conv(x, w) a = Add(planes, c) k = Mul(a, one) y = Relu(k) }}",
        ["Conv", "Relu"],
    ),
    "through_identity": (
        f"m ({_IN}) => (float[1,4,6,6] y) {{ "
        f"c = Conv(x, w) i = Identity(c) n = BatchNormalization(i, {_NORM}) y = Dropout(n) }}",
        ["Conv"],
    ),
    "alone": (
        f"m ({_IN}) => (float[1,3,8,8] y) {{ r = Relu(x) y = BatchNormalization(r, {_NORM3}) }}",
        ["Relu", "Conv"],
    ),
    "alone_on_rows": (
        f"m (float[2,4] x) => (float[2,4] y) {{ y = BatchNormalization(x, {_NORM}) }}",
        ["Mul", "Add"],
    ),
    "read_twice": (
        f"m ({_IN}) => (float[1,4,6,6] y, float[1,4,6,6] z) {{ "
        f"c = Conv(x, w) y = BatchNormalization(c, {_NORM}) z = Relu(c) }}",
        ["Conv", "Conv", "Relu"],
    ),
    "not_per_channel": (
        f"m ({_IN}) => (float[1,4,6,6] y) {{ c = Conv(x, w) y = Add(c, wide) }}",
        ["Conv", "Add"],
    ),
    "shared_weights": (
        f"m ({_IN}) => (float[1,4,6,6] y, float[1,4,6,6] z) {{ "
        f"c = Conv(x, w) y = BatchNormalization(c, {_NORM}) z = Conv(x, w) }}",
        ["Conv", "Conv"],
    ),
}


def _model(text: str) -> onnx.ModelProto:
    made = parse(text)
    used = {name for node in made.graph.node for name in node.input}
    held = {name: values for name, values in _CONSTANTS.items() if name in used}
    made.graph.initializer.extend(numpy_helper.from_array(np.asarray(v), name) for name, v in held.items())
    return made


@pytest.mark.parametrize("name", GRAPHS)
def test_folded_graph_computes_the_same(name: str) -> None:
    text, expected_ops = GRAPHS[name]
    model = _model(text)
    imported = import_model(model).model
    assert [node.op_type for node in imported.graph] == expected_ops
    assert [value.name for value in imported.graph.outputs] == [value.name for value in model.graph.output]
    shape = tuple(dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim)
    feeds = {"x": np.random.default_rng(0).normal(size=shape).astype(np.float32)}
    for expected, found in zip(outputs(model, feeds), outputs(imported, feeds), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_the_origin_of_a_folded_node_names_both() -> None:
    model = _model(GRAPHS["conv"][0])
    for node, name in zip(model.graph.node, ("conv", "norm"), strict=True):
        node.name = name
    assert import_model(model).origin["conv"] == ("conv", "norm")


def test_a_training_normalization_stays() -> None:
    text = f"m ({_IN}) => (float[1,3,8,8] y) {{ y, m, v = BatchNormalization <training_mode = 1> (x, {_NORM3}) }}"
    assert [node.op_type for node in import_model(_model(text)).model.graph] == ["BatchNormalization"]
