"""Elementwise ops between one DQ and one Q become one table where nothing else reads between them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper

from hexqdq.import_.pipeline import import_model
from hexqdq.ops.elementwise.program import Program
from hexqdq.partition.pipeline import partition
from hexqdq.partition.product import NpuPart, PartitionedModel
from hexqdq.quantize.pipeline import already_quantized
from hexqdq.target import find_target
from tests.partition.execute import run_model, run_parts, unit_differences

CONSTANTS: dict[str, NDArray[Any]] = {
    "s": np.array(0.05, np.float32),
    "z": np.array(120, np.uint8),
    "s_out": np.array(0.03, np.float32),
    "z_out": np.array(20, np.uint8),
    "s2": np.array(0.02, np.float32),
    "three": np.array(3.0, np.float32),
    "zero": np.array(0.0, np.float32),
    "six": np.array([6.0], np.float32),
    "vector": np.array([1.0, 2.0], np.float32),
    "count": np.array(150, np.uint8),
}
OUT = "y = QuantizeLinear(r, s_out, z_out)"
HEAD = ("xd = DequantizeLinear(x, s, z)",)


def graph(*lines: str, outputs: str = "uint8[1,3,4,2] y") -> onnx.ModelProto:
    """A model of u8 ``x`` from text lines; constants are there by name."""
    body = "\n".join(lines)
    text = f'<ir_version: 8, opset_import: ["" : 17]>\nchains (uint8[1,3,4,2] x) => ({outputs}) {{\n{body}\n}}'
    proto = onnx.parser.parse_model(text)
    used = {name for node in proto.graph.node for name in node.input}
    proto.graph.initializer.extend(
        numpy_helper.from_array(values, name) for name, values in CONSTANTS.items() if name in used
    )
    return proto


CHAINS = {
    "silu": ("a = Sigmoid(xd)", "r = Mul(xd, a)"),
    "silu_of_two_dq": ("a = Sigmoid(xd)", "xe = DequantizeLinear(x, s, z)", "r = Mul(a, xe)"),
    "twice_hard_swish": ("a = Add(xd, three)", "b = Clip(a, zero, six)", "c = Mul(xd, b)", "r = Div(c, three)"),
    "hard_sigmoid_gate": ("a = HardSigmoid <alpha = 0.25> (xd)", "r = Mul(xd, a)"),
    "affine": ("a = Mul(xd, six)", "r = Add(a, three)"),
    "quantized_constant": ("c = DequantizeLinear(count, s2, z)", "a = Mul(c, xd)", "r = Sub(a, c)"),
    "two_branches": ("a = Sigmoid(xd)", "b = Tanh(xd)", "c = Neg(b)", "r = Mul(a, c)"),
    "float_constant": ("r = Mul(xd, six)",),
    "op_without_row": ("r = Div(xd, six)",),
    "activation_first": ("a = Relu(xd)", "r = Sigmoid(a)"),
}
NOT_CHAINS = {
    "read_between": (("a = Sigmoid(xd)", "r = Mul(xd, a)"), "uint8[1,3,4,2] y, float[1,3,4,2] a"),
    "vector": (("a = Sigmoid(xd)", "r = Mul(a, vector)"), "uint8[1,3,4,2] y"),
    "other_tensor": (("e = DequantizeLinear(x, s2, z)", "a = Sigmoid(xd)", "r = Mul(e, a)"), "uint8[1,3,4,2] y"),
    "unknown_op": (("a = Sigmoid(xd)", "b = Sin(a)", "r = Mul(xd, b)"), "uint8[1,3,4,2] y"),
}


def cut(proto: onnx.ModelProto) -> tuple[ir.Model, PartitionedModel]:
    """The imported model and its parts."""
    imported = import_model(proto, None)
    return imported.model, partition(already_quantized(imported), find_target("v73"))


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_is_one_unit(name: str) -> None:
    _, made = cut(graph(*HEAD, *CHAINS[name], OUT))
    (part,) = made.parts
    assert isinstance(part, NpuPart)
    (unit,) = part.graph.units
    assert unit.op_type == "Chain" and len(unit.inputs) == 1
    assert Program.from_text(str(unit.attributes["program"])).steps
    assert all(decision.segment == 0 for decision in made.decisions)


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_computes_what_onnxruntime_does(name: str) -> None:
    model, made = cut(graph(*HEAD, *CHAINS[name], OUT))
    for first in range(0, 256, 24):
        feeds = {"x": (np.arange(first, first + 24) % 256).astype(np.uint8).reshape(1, 3, 4, 2)}
        differences = unit_differences(model, made, feeds)
        assert max(values.max() for values in differences.values()) <= 1


@pytest.mark.parametrize("name", NOT_CHAINS)
def test_what_is_no_chain_stays_apart(name: str) -> None:
    lines, outputs = NOT_CHAINS[name]
    model, made = cut(graph(*HEAD, *lines, OUT, outputs=outputs))
    units = [unit for part in made.parts if isinstance(part, NpuPart) for unit in part.graph.units]
    assert all(unit.op_type != "Chain" for unit in units)
    feeds = {"x": np.arange(24, dtype=np.uint8).reshape(1, 3, 4, 2)}
    expected = run_model(model, feeds)
    for key, values in run_parts(made, feeds).items():
        np.testing.assert_allclose(values.astype(float), expected[key].astype(float), atol=1)


def test_argmax_gives_the_models_integers() -> None:
    lines = ("r = ArgMax <axis = 1, keepdims = 0> (xd)",)
    model, made = cut(graph(*HEAD, *lines, outputs="int64[1,4,2] r"))
    (part,) = made.parts
    assert isinstance(part, NpuPart) and not part.outputs[0].is_float
    feeds = {"x": np.random.default_rng(3).integers(0, 256, (1, 3, 4, 2)).astype(np.uint8)}
    (result,) = run_parts(made, feeds).values()
    assert result.dtype == np.int64
    np.testing.assert_array_equal(result, run_model(model, feeds)["r"])
