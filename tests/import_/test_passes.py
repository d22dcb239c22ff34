"""What import makes of a model: the same numbers in one canonical form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import helper

from hexqdq.import_.pipeline import CANONICAL, STRUCTURE, import_model
from hexqdq.import_.product import model_digest
from tests.import_.models import outputs, parse, relu_model, weighted_model


def ops(model: onnx.ModelProto, **shapes: tuple[int, ...]) -> list[str]:
    return [node.op_type for node in import_model(model, shapes).model.graph]


def test_shape_arithmetic_is_folded() -> None:
    model = parse(
        """m (float[n,4,6] x) => (float[n,24] y) {
            shape = Shape(x)  zero = Constant<value = int64[1] {0}>()  one = Constant<value_ints = [1]>()
            n = Slice(shape, zero, one)  rest = Constant<value_ints = [-1]>()
            target = Concat<axis = 0>(n, rest)  y = Reshape(x, target)
        }"""
    )
    imported = import_model(model, {"x": (2, 4, 6)}).model
    assert [node.op_type for node in imported.graph] == ["Reshape"]
    assert set(imported.graph.initializers) == {"target"}


def test_q_and_dq_of_constants_stay_to_the_bit() -> None:
    scale, zero = np.float32(0.5).reshape(()), np.int8(0).reshape(())
    model = parse(
        """m (float[1,2] x) => (float[1,2] y) {
            wd = DequantizeLinear(w, s, z)  fq = QuantizeLinear(f, s, z)  fd = DequantizeLinear(fq, s, z)
            h = MatMul(x, wd)  y = Add(h, fd)
        }""",
        w=np.array([[1, -2], [3, 4]], np.int8),
        f=np.array([0.3, 0.8], np.float32),
        s=scale,
        z=zero,
    )
    assert ops(model) == ["DequantizeLinear", "QuantizeLinear", "DequantizeLinear", "MatMul", "Add"]


@given(
    size=st.tuples(st.integers(3, 9), st.integers(3, 9)),
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    dilation=st.integers(1, 2),
    mode=st.sampled_from(["SAME_UPPER", "SAME_LOWER", "VALID"]),
)
def test_auto_pad_becomes_pads(
    size: tuple[int, int], kernel: tuple[int, int], stride: tuple[int, int], dilation: int, mode: str
) -> None:
    if mode == "VALID" and any((k - 1) * dilation + 1 > s for k, s in zip(kernel, size, strict=True)):
        return
    generator = np.random.default_rng(1)
    node = helper.make_node(
        "Conv", ["x", "w"], ["y"], strides=list(stride), dilations=[dilation, dilation], auto_pad=mode
    )
    weights = generator.normal(size=(2, 1, *kernel)).astype(np.float32)
    model = _one_node(node, (1, 1, *size), weights)
    imported = import_model(model).model
    (found,) = imported.graph
    assert "auto_pad" not in found.attributes
    x = generator.normal(size=(1, 1, *size)).astype(np.float32)
    if dilation == 1 or mode == "VALID":
        (expected,), (got,) = outputs(model, {"x": x}), outputs(imported, {"x": x})
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("kernel", [(3, 3), (4, 2)])
@pytest.mark.parametrize(
    "given_size",
    [
        {"auto_pad": "SAME_UPPER"},
        {"auto_pad": "SAME_LOWER"},
        {"auto_pad": "VALID"},
        {"output_shape": [8, 7]},
        {"output_shape": [7, 8], "auto_pad": "SAME_UPPER"},
        {"output_shape": [10, 11]},
    ],
    ids=str,
)
def test_the_output_size_of_a_transposed_convolution_becomes_pads(
    given_size: dict[str, Any], kernel: tuple[int, int]
) -> None:
    generator = np.random.default_rng(1)
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2], **given_size)
    weights = generator.normal(size=(1, 2, *kernel)).astype(np.float32)
    model = _one_node(node, (1, 1, 4, 5), weights)
    imported = import_model(model).model
    (found,) = imported.graph
    assert not {"auto_pad", "output_shape"} & set(found.attributes)
    x = generator.normal(size=(1, 1, 4, 5)).astype(np.float32)
    (expected,), (got,) = outputs(model, {"x": x}), outputs(imported, {"x": x})
    np.testing.assert_array_equal(got, expected)


def _one_node(node: onnx.NodeProto, shape: tuple[int, ...], weights: NDArray[Any]) -> onnx.ModelProto:
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node],
        "m",
        [info("x", onnx.TensorProto.FLOAT, shape)],
        [onnx.ValueInfoProto(name="y")],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return onnx.shape_inference.infer_shapes(model)


def test_old_opset_is_upgraded_and_initializer_inputs_are_constants() -> None:
    model = parse("m (float[1,4] x, float[4] w) => (float[1,4] y) { h = Add(x, w) y = Relu(h) }", opset=8)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(4, np.float32), "w"))
    model.ir_version = 3
    imported = import_model(model).model
    assert imported.opset_imports[""] == 17
    assert [value.name for value in imported.graph.inputs] == ["x"]


@pytest.mark.parametrize("opset", [17, 18, 21])
def test_newer_opset_stays(opset: int) -> None:
    model = parse("m (float[1,4] x) => (float[1,4] y) { y = Relu(x) }", opset=opset)
    assert import_model(model).model.opset_imports[""] == opset


def test_functions_are_inlined() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17, "own" : 1]>
        m (float[1,4] x) => (float[1,4] y) { y = own.twice(x) }
        <domain: "own", opset_import: ["" : 17]> twice (a) => (b) { h = Relu(a) b = Add(h, h) }"""
    )
    imported = import_model(model)
    assert [node.op_type for node in imported.model.graph] == ["Relu", "Add"]
    assert not imported.model.functions


def test_dead_nodes_identities_and_dropout_leave() -> None:
    model = parse(
        """m (float[1,4] x) => (float[1,4] y) {
            dead = Neg(x)  i = Identity(x)  d = Dropout(i)  c = Cast<to = 1>(d)  y = Relu(c)
        }"""
    )
    assert ops(model) == ["Relu"]


def test_nodes_get_names_of_their_own() -> None:
    model = parse("m (float[1,4] x) => (float[1,4] y) { a = Relu(x) b = Neg(a) y = Abs(b) }")
    model.graph.node[0].name = model.graph.node[1].name = "same"
    names = [node.name for node in import_model(model).model.graph]
    assert names == ["same", "same_2", "Abs_y"]


def test_origin_names_source_nodes() -> None:
    model = parse("m (float[1,4] x) => (float[1,4] y) { h = Neg(x) y = Relu(h) }", opset=11)
    model.graph.node[1].name = "act"
    assert import_model(model).origin == {"Neg_h": ("Neg_h",), "act": ("act",)}


def test_digest_counts_content_only() -> None:
    documented = weighted_model()
    documented.doc_string = documented.graph.doc_string = "a word"
    changed = weighted_model()
    changed.graph.initializer[0].raw_data = bytes(len(changed.graph.initializer[0].raw_data))
    digests = [import_model(model).digest for model in (weighted_model(), documented, changed, relu_model())]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


@pytest.mark.parametrize("one", [*STRUCTURE, *CANONICAL], ids=lambda one: one.name)
def test_passes_are_honest_and_idempotent(one: Any) -> None:
    model = import_model(weighted_model()).model
    before = model_digest(model)
    assert one.run(model) == 0
    assert model_digest(model) == before


FILES = {
    "mnist_cntk8.onnx": {},
    "ultraface_rfb320.onnx": {},
    "yunet_n_320.onnx": {},
    "gtcrn_simple.onnx": {},
    "selfie_segmentation.onnx": {},
    "tinylm_prefill128.onnx": {},
    "super_resolution_x3.onnx": {"input": (1, 1, 20, 20)},
    "resnet8_cifar_fp32.onnx": {"input_1": (1, 32, 32, 3)},
    "wakeword_1dconv_qdq_s8.onnx": {"serving_default_input_1:0": (1, 30, 1, 40)},
}


@pytest.mark.parametrize("file", FILES)
def test_imported_model_computes_what_the_source_computes(shared: Path, file: str) -> None:
    path = shared / "models" / file
    imported = import_model(path, FILES[file]).model
    feeds = {str(value.name): _noise(value) for value in imported.graph.inputs}
    for expected, found in zip(outputs(onnx.load(path), feeds), outputs(imported, feeds), strict=True):
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        else:
            np.testing.assert_array_equal(found, expected)


def _noise(value: Any) -> NDArray[Any]:
    generator, shape, dtype = np.random.default_rng(5), value.shape.numpy(), value.dtype.numpy()
    values = generator.uniform(0, 1, shape) if dtype.kind == "f" else generator.integers(0, 60, shape)
    return np.asarray(values, dtype)


def test_an_identity_before_an_output_leaves_its_name() -> None:
    model = parse("m (float[1,4] x) => (float[1,4] y, float[1,4] z) { h = Relu(x) y = Identity(h) z = Identity(x) }")
    imported = import_model(model).model
    assert [node.op_type for node in imported.graph] == ["Relu", "Identity"]
    assert [value.name for value in imported.graph.outputs] == ["y", "z"]


@pytest.mark.parametrize(("kind", "dtype"), [("float", np.float32), ("uint8", np.uint8)])
def test_a_pad_says_what_it_fills_with(kind: str, dtype: type[np.generic]) -> None:
    model = parse(f"m ({kind}[2,3] x) => ({kind}[2,5] y) {{ y = Pad(x, p) }}", p=np.array([0, 1, 0, 1]))
    imported = import_model(model).model
    (pad,) = imported.graph
    fill = pad.inputs[2]
    assert fill is not None and fill.const_value is not None
    assert fill.const_value.numpy() == 0 and fill.const_value.numpy().dtype == dtype
    feeds = {"x": np.ones((2, 3), dtype)}
    assert np.array_equal(outputs(model, feeds)[0], outputs(imported, feeds)[0])


_OLD = {
    "nearest_7": (7, 'y = Upsample <mode = "nearest", scales = [1.0, 1.0, 2.5, 1.5]> (x)'),
    "nearest_9": (9, 'y = Upsample <mode = "nearest"> (x, s)'),
    "linear_9": (9, 'y = Upsample <mode = "linear"> (x, s)'),
    "nearest_10": (10, 'y = Resize <mode = "nearest"> (x, s)'),
    "linear_10": (10, 'y = Resize <mode = "linear"> (x, s)'),
    "shrinking_10": (10, 'y = Resize <mode = "nearest"> (x, half)'),
    "pad_2": (9, "y = Pad <pads = [0, 0, 1, 1, 0, 0, 1, 1], value = 1.5> (x)"),
    "slice_1": (9, "y = Slice <starts = [1], ends = [3], axes = [2]> (x)"),
    "squeeze_1": (9, "y = Squeeze <axes = [0]> (x)"),
    "softmax_1": (9, "y = Softmax <axis = 1> (x)"),
}


@pytest.mark.parametrize("name", _OLD)
def test_an_old_op_keeps_its_meaning(name: str) -> None:
    opset, line = _OLD[name]
    model = parse(f"m (float[1,2,4,6] x) => (float y) {{ {line} }}", opset)
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    for key, scales in (("s", [1, 1, 2.5, 1.5]), ("half", [1, 1, 0.5, 0.5])):
        if key in model.graph.node[0].input:
            model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(scales, np.float32), key))
    feeds = {"x": np.random.default_rng(0).normal(size=(1, 2, 4, 6)).astype(np.float32)}
    imported = import_model(model).model
    assert imported.graph.opset_imports[""] == 17
    np.testing.assert_allclose(outputs(imported, feeds)[0], outputs(model, feeds)[0], atol=1e-6)
