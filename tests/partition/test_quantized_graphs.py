"""Drawn float graphs, quantized by the default recipe: units within a step, every op with a row on the NPU."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from hexqdq.import_.pipeline import import_model
from hexqdq.partition.pipeline import partition
from hexqdq.quantize.pipeline import quantize
from hexqdq.target import find_target
from tests.partition.execute import run_model, run_parts, unit_differences

SHAPE = [1, 4, 4, 4]
FLOAT_OPS = ("Sin", "Cos", "Atan")


@dataclass
class Drawing:
    """A float graph whose values all have one shape, so that any may follow any."""

    draw: st.DrawFn
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    values: list[str] = field(default_factory=lambda: ["x"])

    def node(self, op_type: str, inputs: list[str], **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [name], name=f"n{len(self.nodes)}", **attributes))
        return name

    def constant(self, *shape: int, scale: float = 0.5) -> str:
        name = f"c{len(self.constants)}"
        values = np.random.default_rng(len(self.constants)).normal(0, scale, shape).astype(np.float32)
        self.constants.append(numpy_helper.from_array(values, name))
        return name

    def integers(self, values: list[int]) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def step(self) -> None:
        source = self.draw(st.sampled_from(self.values))
        kind = self.draw(
            st.sampled_from(("conv", "depthwise", "add", "addend", "matmul", "clamp", "move", "soft", "float"))
        )
        self.values.append(getattr(self, f"_{kind}")(source))

    def _conv(self, source: str) -> str:
        bias = [self.constant(4)] if self.draw(st.booleans()) else []
        return self.node("Conv", [source, self.constant(4, 4, 3, 3, scale=0.2), *bias], pads=[1, 1, 1, 1])

    def _depthwise(self, source: str) -> str:
        return self.node("Conv", [source, self.constant(4, 1, 3, 3)], pads=[1, 1, 1, 1], group=4)

    def _add(self, source: str) -> str:
        return self.node("Add", [source, self.draw(st.sampled_from(self.values))])

    def _addend(self, source: str) -> str:
        return self.node("Add", [source, self.constant(*self.draw(st.sampled_from([(4,), (1, 4, 1, 1), ()])))])

    def _matmul(self, source: str) -> str:
        product = self.node("MatMul", [source, self.constant(4, 4)])
        return self.node("Add", [self.constant(4), product]) if self.draw(st.booleans()) else product

    def _clamp(self, source: str) -> str:
        return self.node("Relu", [source])

    def _move(self, source: str) -> str:
        if self.draw(st.booleans()):
            return self.node("Transpose", [source], perm=[0, 2, 3, 1])
        flat = self.node("Reshape", [source, self.integers([1, -1])])
        return self.node("Reshape", [flat, self.integers(SHAPE)])

    def _soft(self, source: str) -> str:
        return self.node("Softmax", [source], axis=self.draw(st.sampled_from([-1, 1])))

    def _float(self, source: str) -> str:
        return self.node(self.draw(st.sampled_from(FLOAT_OPS)), [source])


@st.composite
def models(draw: st.DrawFn) -> onnx.ModelProto:
    drawing = Drawing(draw)
    for _ in range(draw(st.integers(1, 10))):
        drawing.step()
    outputs = draw(st.lists(st.sampled_from(drawing.values[1:]), max_size=2, unique=True))
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, SHAPE) for n in {*outputs, drawing.values[-1]}]
    graph_input = helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)
    graph = helper.make_graph(drawing.nodes, "drawn", [graph_input], info, drawing.constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@given(models())
def test_default_recipe_reaches_the_npu(model: onnx.ModelProto) -> None:
    imported = import_model(model)
    generator = np.random.default_rng(0)
    samples = [{"x": generator.normal(0, 1, SHAPE).astype(np.float32)} for _ in range(3)]
    qdq = quantize(imported, samples)
    parts = partition(qdq, find_target("v73"))
    for decision in parts.decisions:
        if decision.segment is None:
            left = decision.op_type in (*FLOAT_OPS, "QuantizeLinear", "DequantizeLinear", "Reshape", "Transpose")
            assert left, decision
    feeds = {tensor.name: samples[0][tensor.name] for tensor in parts.inputs}
    for unit, steps in unit_differences(qdq.model, parts, feeds).items():
        assert steps.max() <= 1, unit
    exact, found = run_model(qdq.model, feeds), run_parts(parts, feeds)
    assert all(found[name].shape == values.shape for name, values in exact.items())
