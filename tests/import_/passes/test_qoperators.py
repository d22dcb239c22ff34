"""Models of integer operators become QDQ models that compute the same to within a step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper

from hexqdq.import_.pipeline import import_model
from hexqdq.partition.pipeline import partition
from hexqdq.quantize.pipeline import already_quantized
from hexqdq.target import DEFAULT_TARGET, find_target
from tests.import_.models import outputs, parse

_HEAD = '<ir_version: 8, opset_import: ["" : {opset}, "com.microsoft" : 1]>\n'
_RANDOM = np.random.default_rng(3)
_CONSTANTS: dict[str, Any] = {
    "s": np.float32(0.05),
    "s2": np.float32(0.02),
    "sy": np.float32(0.4),
    "sp": np.float32(1 / 256),
    "sw": np.float32(0.01),
    "sws": np.array([0.01, 0.02, 0.005, 0.015], np.float32),
    "z": np.uint8(120),
    "z0": np.uint8(0),
    "zw": np.int8(0),
    "zws": np.zeros(4, np.int8),
    "w": _RANDOM.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8),
    "wm": _RANDOM.integers(-127, 128, (6, 4)).astype(np.int8),
    "wt": _RANDOM.integers(-127, 128, (4, 6)).astype(np.int8),
    "b": _RANDOM.integers(-900, 900, 4).astype(np.int32),
}
_MAP = "uint8[1,3,5,5] x"
GRAPHS = {
    "conv": f"m ({_MAP}) => (uint8[1,4,3,3] y) {{ y = QLinearConv(x, s, z, w, sw, zw, sy, z, b) }}",
    "conv_per_channel": f"m ({_MAP}) => (uint8[1,4,5,5] y) {{ "
    "y = QLinearConv <pads = [1,1,1,1]> (x, s, z, w, sws, zws, sy, z) }",
    "matmul": "m (uint8[2,6] x) => (uint8[2,4] y) { y = QLinearMatMul(x, s, z, wm, sw, zw, sy, z) }",
    "matmul_per_column": "m (uint8[2,6] x) => (uint8[2,4] y) { y = QLinearMatMul(x, s, z, wm, sws, zws, sy, z) }",
    "gemm": "m (uint8[2,6] x) => (uint8[2,4] y) { "
    "y = com.microsoft.QGemm <transB = 1> (x, s, z, wt, sws, zws, b, sy, z) }",
    "add": f"m ({_MAP}) => (uint8[1,3,5,5] y) {{ y = com.microsoft.QLinearAdd(x, s, z, x, s2, z0, sy, z) }}",
    "mul": f"m ({_MAP}) => (uint8[1,3,5,5] y) {{ y = com.microsoft.QLinearMul(x, s, z, x, s2, z0, sy, z) }}",
    "concat": f"m ({_MAP}) => (uint8[1,6,5,5] y) {{ "
    "y = com.microsoft.QLinearConcat <axis = 1> (s, z, x, s, z, x, s2, z0) }",
    "mean": f"m ({_MAP}) => (uint8[1,3,1,1] y) {{ y = com.microsoft.QLinearGlobalAveragePool(x, s, z, s2, z) }}",
    "pool": f"m ({_MAP}) => (uint8[1,3,2,2] y) {{ "
    "y = com.microsoft.QLinearAveragePool <kernel_shape = [2,2], strides = [2,2]> (x, s, z, s, z) }",
    "sigmoid": f"m ({_MAP}) => (uint8[1,3,5,5] y) {{ y = com.microsoft.QLinearSigmoid(x, s, z, sp, z0) }}",
    "leaky": f"m ({_MAP}) => (uint8[1,3,5,5] y) {{ y = com.microsoft.QLinearLeakyRelu <alpha = 0.1> (x, s, z, s, z) }}",
    "softmax": "m (uint8[2,6] x) => (uint8[2,6] y) { "
    "y = com.microsoft.QLinearSoftmax <axis = -1, opset = 13> (x, s, z, sp, z0) }",
}


def _model(name: str, opset: int = 17) -> onnx.ModelProto:
    made = onnx.parser.parse_model(_HEAD.format(opset=opset) + GRAPHS[name])
    used = {value for node in made.graph.node for value in node.input}
    held = {key: values for key, values in _CONSTANTS.items() if key in used}
    made.graph.initializer.extend(numpy_helper.from_array(np.asarray(v), key) for key, v in held.items())
    return made


def _feeds(model: onnx.ModelProto) -> dict[str, NDArray[Any]]:
    shape = tuple(dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim)
    return {"x": np.random.default_rng(1).integers(0, 256, shape).astype(np.uint8)}


@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize("name", GRAPHS)
def test_operator_becomes_qdq(name: str, opset: int) -> None:
    model = _model(name, opset)
    imported = import_model(model)
    assert not any(node.op_type.startswith("Q") and node.op_type != "QuantizeLinear" for node in imported.model.graph)
    feeds = _feeds(model)
    for expected, found in zip(outputs(model, feeds), outputs(imported.model, feeds), strict=True):
        assert expected.dtype == found.dtype
        assert np.abs(expected.astype(int) - found.astype(int)).max() <= 1


@pytest.mark.parametrize("name", GRAPHS)
def test_converted_operator_is_one_unit(name: str) -> None:
    parts = partition(already_quantized(import_model(_model(name))), find_target(DEFAULT_TARGET)).parts
    assert [len(part.graph.units) for part in parts if hasattr(part, "graph")] == [1]
    assert len(parts) == 1


def test_operator_keeps_its_name_and_output() -> None:
    imported = import_model(_model("conv"))
    source = _model("conv")
    source.graph.node[0].name = "first"
    named = import_model(source)
    (conv,) = (node for node in named.model.graph if node.op_type == "Conv")
    assert conv.name == "first"
    assert [value.name for value in imported.model.graph.outputs] == ["y"]
    last = named.model.graph.outputs[0].producer()
    assert last is not None and named.origin[str(last.name)] == ("first",)


@pytest.mark.parametrize("name", ["concat", "sigmoid"])
def test_a_computed_scale_stays(name: str) -> None:
    """An operator whose numbers are inputs of the model has no QDQ form here."""
    model = _model(name)
    kept = [tensor for tensor in model.graph.initializer if tensor.name != "s"]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    model.graph.input.append(onnx.helper.make_tensor_value_info("s", onnx.TensorProto.FLOAT, []))
    model.graph.value_info.extend(model.graph.output)
    assert model.graph.node[0].op_type in [node.op_type for node in import_model(model).model.graph]


def test_a_quantized_network(tmp_path: Path) -> None:
    """What onnxruntime's own quantizer writes in operator format."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static

    rng = np.random.default_rng(5)
    model = parse(
        """m (float[1,3,8,8] x) => (float[1,5] y) {
            c = Conv <pads = [1,1,1,1]> (x, w, b) r = Relu(c) p = MaxPool <kernel_shape = [2,2], strides = [2,2]> (r)
            a = Add(p, p) k = Concat <axis = 1> (a, p) g = GlobalAveragePool(k) f = Flatten(g) y = Gemm(f, v)
        }""",
        w=rng.normal(size=(4, 3, 3, 3)).astype(np.float32),
        b=rng.normal(size=4).astype(np.float32),
        v=rng.normal(size=(8, 5)).astype(np.float32),
    )
    onnx.save(model, tmp_path / "float.onnx")
    samples = [{"x": rng.normal(size=(1, 3, 8, 8)).astype(np.float32)} for _ in range(4)]

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.rest = iter(samples)

        def get_next(self) -> dict[str, NDArray[Any]] | None:
            return next(self.rest, None)

    quantize_static(tmp_path / "float.onnx", tmp_path / "operators.onnx", Reader(), quant_format=QuantFormat.QOperator)
    source = onnx.load(tmp_path / "operators.onnx")
    assert any(node.op_type == "QLinearConv" for node in source.graph.node)
    imported = import_model(source)
    kinds = {node.op_type for node in imported.model.graph}
    assert not any(kind.startswith(("QLinear", "QGemm")) for kind in kinds)
    parts = partition(already_quantized(imported), find_target(DEFAULT_TARGET)).parts
    assert len(parts) == 1 and hasattr(parts[0], "graph")
    (expected,), (found,) = outputs(source, samples[0]), outputs(imported.model, samples[0])
    assert np.abs(expected - found).max() <= 0.03 * np.abs(expected).max()
