"""Drawn graphs of exact units, CPU nodes and Q/DQ wired at will compute what onnxruntime computes, to the bit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from hexqdq.import_.pipeline import import_model
from hexqdq.partition.pipeline import partition
from hexqdq.partition.product import NpuPart
from hexqdq.quantize.pipeline import already_quantized
from hexqdq.target import find_target
from tests.partition.execute import run_model, run_parts

SHAPE = [2, 3, 3, 2]


@dataclass
class Drawing:
    """A graph under construction: float and integer values that later nodes may read."""

    draw: st.DrawFn
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    floats: list[str] = field(default_factory=lambda: ["x"])
    integers: list[str] = field(default_factory=lambda: ["i"])

    def node(self, op_type: str, inputs: list[str], **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [name], name=f"n{len(self.nodes)}", **attributes))
        return name

    def pick(self, names: list[str]) -> str:
        return self.draw(st.sampled_from(names))

    def quantize(self, value: str) -> None:
        self.integers.append(self.node("QuantizeLinear", [value, "scale", "zero_point"]))

    def step(self) -> None:
        kind = self.draw(st.sampled_from(("q", "dq", "host", "unit", "unit", "bare", "unmatched")))
        if kind == "q":
            self.quantize(self.pick(self.floats))
        elif kind == "dq":
            self.floats.append(self._dequantized())
        elif kind == "host":
            self.floats.append(self.node(self.pick(["Floor", "Ceil"]), [self.pick(self.floats)]))
        elif kind == "bare":
            self.integers.append(self.node("Transpose", [self.pick(self.integers)], perm=[0, 2, 1, 3]))
        elif kind == "unit":
            self.quantize(self._op(self._dequantized()))
        else:
            result = self._op(self.pick(self.floats))
            self.floats.append(result)
            self.quantize(result)

    def _dequantized(self) -> str:
        return self.node("DequantizeLinear", [self.pick(self.integers), "scale", "zero_point"])

    def _op(self, source: str) -> str:
        op_type = self.pick(["Relu", "Transpose", "Clip"])
        if op_type == "Transpose":
            return self.node(op_type, [source], perm=[0, 2, 1, 3])
        return self.node(op_type, [source] if op_type == "Relu" else [source, "low", "high"])


@st.composite
def models(draw: st.DrawFn) -> onnx.ModelProto:
    """Everything has one scale, so each op is exact and nothing may differ."""
    drawing = Drawing(draw)
    for _ in range(draw(st.integers(1, 14))):
        drawing.step()
    made_floats = drawing.floats[1:]
    made_integers = drawing.integers[1:]
    outputs = draw(st.lists(st.sampled_from(made_floats + made_integers), min_size=1, max_size=4, unique=True))
    infos = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT if name in made_floats else TensorProto.UINT8, SHAPE)
        for name in outputs
    ]
    constants = {"scale": np.float32(0.25), "zero_point": np.uint8(100), "low": np.float32(-5), "high": np.float32(9)}
    graph = helper.make_graph(
        drawing.nodes,
        "drawn",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE),
            helper.make_tensor_value_info("i", TensorProto.UINT8, SHAPE),
        ],
        infos,
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@given(models(), st.integers(0, 2**32 - 1))
def test_parts_equal_the_uncut_model(model: onnx.ModelProto, seed: int) -> None:
    qdq = already_quantized(import_model(model))
    parts = partition(qdq, find_target("v73"))
    generator = np.random.default_rng(seed)
    drawn: dict[str, NDArray[Any]] = {
        "x": (generator.integers(-200, 200, SHAPE) / 8 + 0.03).astype(np.float32),
        "i": generator.integers(0, 256, SHAPE).astype(np.uint8),
    }
    feeds = {tensor.name: drawn[tensor.name] for tensor in parts.inputs}
    expected, found = run_model(qdq.model, feeds), run_parts(parts, feeds)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, strict=True)
    segments = sum(isinstance(part, NpuPart) for part in parts.parts)
    assert {d.segment for d in parts.decisions if d.segment is not None} == set(range(segments))
