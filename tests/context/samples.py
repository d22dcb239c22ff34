"""Hand-made compiled models: a quantized Conv, with or without a host part behind it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hexqdq.compile.product import (
    Area,
    CompiledModel,
    CompiledSegment,
    Edge,
    HostPart,
    NpuPart,
    Operand,
    Part,
    Step,
    StepList,
    TosaSegment,
)
from hexqdq.ops.unit import QuantUnit, Tensor, UnitGraph
from hexqdq.qtypes import QType, QuantParams
from hexqdq.report import Decision

INPUT = Tensor("x_q", (1, 3, 4, 4), QType.U8, QuantParams.per_tensor(QType.U8, 0.05, 128))
OUTPUT = Tensor("y_q", (1, 2, 4, 4), QType.U8, QuantParams.per_tensor(QType.U8, 0.1, 120))
WEIGHT_SCALES = np.array([0.01, 0.02], np.float32)


def conv_graph(name: str = "segment0") -> UnitGraph:
    """One 1x1 Conv on u8 with per-channel weights."""
    weights = np.array([[60, -30, 90], [-7, 127, 5]], np.int8).reshape(2, 3, 1, 1)
    weight_params = QuantParams.per_channel(QType.S8, WEIGHT_SCALES, np.zeros(2, np.int8), 0)
    bias_params = QuantParams.per_channel(QType.S32, WEIGHT_SCALES * np.float32(0.05), np.zeros(2, np.int32), 0)
    unit = QuantUnit(
        "conv",
        "Conv",
        (INPUT, Tensor("w", (2, 3, 1, 1), QType.S8, weight_params), Tensor("b", (2,), QType.S32, bias_params)),
        (OUTPUT,),
        {"kernel_shape": (1, 1), "strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1), "group": 1},
        {"w": weights, "b": np.array([100, -50], np.int32)},
        source_nodes=("conv", "conv_q"),
    )
    return UnitGraph(name, (INPUT,), (OUTPUT,), (unit,))


def conv_segment(objects: Mapping[str, bytes] | None = None) -> CompiledSegment:
    graph = conv_graph()
    operands = (
        Operand(Area.INPUT, INPUT.nbytes, reads=True),
        Operand(Area.CONSTANT, 5000, reads=True),
        Operand(Area.OUTPUT, OUTPUT.nbytes, writes=True),
    )
    steps = StepList((Step("conv_1x1", operands, label="conv"),), graph.inputs, graph.outputs, 256, 5000)
    tosa = TosaSegment(graph.name, "module { }\n", graph.inputs, graph.outputs)
    constants = bytes(i * 7 % 256 for i in range(5000))
    return CompiledSegment(graph.name, graph, tosa, steps, objects or {"hexagon": b"not really ELF"}, constants)


def npu_part() -> NpuPart:
    return NpuPart(conv_graph(), (Edge("x", INPUT, True),), (Edge("y", OUTPUT, True),))


def conv_model(segment: CompiledSegment | None = None, host_parts: tuple[HostPart, ...] = ()) -> CompiledModel:
    """x float -> Conv -> y float, and what the host parts write."""
    parts: tuple[Part, ...] = (npu_part(), *host_parts)
    written = ["y", *(name for part in host_parts for name in part.outputs)]
    return CompiledModel(
        target="hexagon-v73",
        digest="5f" * 32,
        inputs=(Tensor("x", INPUT.shape, QType.F32),),
        outputs=tuple(Tensor(name, OUTPUT.shape, QType.F32) for name in written),
        parts=parts,
        segments=(segment or conv_segment(),),
        decisions=(Decision("conv", "Conv", 0, None, 96), Decision("abs", "Abs", None, "Abs has no NPU form")),
        origin={"conv": ("Conv_0", "BatchNorm_1")},
    )


def abs_part() -> HostPart:
    """z = |y| as an ONNX model."""
    import onnx

    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, OUTPUT.shape) for name in "yz"]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Abs", ["y"], ["z"])], "abs", values[:1], values[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    return HostPart("abs", model.SerializeToString(), ("y",), ("z",))


def sample_input(seed: int = 0) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.random.default_rng(seed).normal(0, 3, INPUT.shape).astype(np.float32)
