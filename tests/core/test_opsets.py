"""A raised opset leaves the numbers: ops whose nodes look different are rewritten, others hold the model back."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from numpy.typing import NDArray

from hexqdq.opsets import NEWEST, raise_opset
from tests.import_.models import outputs, parse

Array = NDArray[Any]
GRAPHS = {
    "reductions": """m (float[2,4,6] x) => (float[2,4,1] a, float[2,1,1] b, float[4] c, float e, float[2,6] f) {
        a = ReduceMean <axes = [-1]> (x)  b = ReduceL2 <axes = [1, 2]> (x)
        c = ReduceMax <axes = [0, 2], keepdims = 0> (x)  e = ReduceSumSquare <keepdims = 0> (x)
        d = ReduceMin <axes = [1]> (x)  o = Constant <value_ints = [1]> ()  f = Squeeze(d, o) }""",
    "split": """m (float[2,4,6] x) => (float[2,2,6] a, float[2,2,6] b, float[2,4,2] c) {
        a, b = Split <axis = 1> (x)  s = Constant <value_ints = [2, 4]> ()  c, d = Split <axis = 2> (x, s) }""",
    "grid": """m (float[1,2,4,4] x, float[1,3,3,2] g) => (float[1,2,3,3] y, float[1,2,3,3] n, float[1,2,3,3] c) {
        y = GridSample(x, g)  n = GridSample <mode = "nearest"> (x, g)  c = GridSample <mode = "bicubic"> (x, g) }""",
    "others": """m (float[1,4,4,4] x) => (float[1,4,2,2] p, float[1,4,8,8] r, float[1,4,6,6] q) {
        p = AveragePool <kernel_shape = [2, 2], strides = [2, 2]> (x)
        s = Constant <value_floats = [1.0, 1.0, 2.0, 2.0]> ()  r = Resize <mode = "linear"> (x, , s)
        w = Constant <value_ints = [0, 0, 1, 1, 0, 0, 1, 1]> ()  q = Pad <mode = "reflect"> (x, w) }""",
    "inner": """m (float[2,4] x, bool c) => (float y) {
        y = If (c) <then_branch = t () => (float a) { a = ReduceMax <axes = [0, 1], keepdims = 0> (x) },
                    else_branch = f () => (float b) { b = ReduceMin <axes = [0, 1], keepdims = 0> (x) }> }""",
}
HELD = {
    "dft": ("m (float[1,8,1] x) => (float[1,8,2] y) { y = DFT <axis = 1> (x) }", 20),
    "groups": (
        """m (float[1,4,8] x, float[2] s, float[2] b) => (float[1,4,8] y) {
            y = GroupNormalization <num_groups = 2> (x, s, b) }""",
        21,
    ),
}  # fmt: skip


def feeds(proto: onnx.ModelProto) -> dict[str, Array]:
    generator = np.random.default_rng(0)
    made: dict[str, Array] = {}
    for value in proto.graph.input:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        if value.type.tensor_type.elem_type == onnx.TensorProto.BOOL:
            made[value.name] = np.ones(shape, np.bool_)
        else:
            made[value.name] = generator.uniform(-1, 1, shape).astype(np.float32)
    return made


def named(proto: onnx.ModelProto) -> ir.Model:
    model = ir.from_proto(proto)
    for number, node in enumerate(ir.traversal.RecursiveGraphIterator(model.graph)):
        node.name = node.name or f"n{number}"
    return model


@pytest.mark.parametrize("version", range(18, NEWEST + 1))
@pytest.mark.parametrize("name", GRAPHS)
def test_numbers_stay(name: str, version: int) -> None:
    proto = parse(GRAPHS[name])
    model = named(proto)
    assert raise_opset(model, version)
    assert model.graph.opset_imports[""] == version
    raised = ir.to_proto(model)
    onnx.checker.check_model(raised, full_check=True)
    for exact, found in zip(outputs(proto, feeds(proto)), outputs(raised, feeds(proto)), strict=True):
        np.testing.assert_allclose(exact, found, rtol=1e-6, atol=1e-6)  # kernels of other opsets sum in another order


@pytest.mark.parametrize("name", HELD)
def test_what_would_mean_something_else_holds_the_model_back(name: str) -> None:
    text, version = HELD[name]
    present = 17 if name == "dft" else 18
    model = named(parse(text, present))
    before = ir.to_proto(model).SerializeToString()
    assert not raise_opset(model, version)
    assert ir.to_proto(model).SerializeToString() == before
    assert raise_opset(model, version - 1)


def test_a_newer_model_stays_and_an_unknown_opset_is_refused() -> None:
    model = named(parse(GRAPHS["split"].replace("Split <axis = 1>", "Split <axis = 1, num_outputs = 2>"), 18))
    assert raise_opset(model, 17) and model.graph.opset_imports[""] == 18
    assert not raise_opset(model, NEWEST + 1)
    assert not raise_opset(named(parse("m (float[2] x) => (float[2] y) { y = Relu(x) }", 13)), 21)
