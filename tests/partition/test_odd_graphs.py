"""Odd graphs compute what onnxruntime computes, and every node has its segment or its sentence."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hexqdq.import_.pipeline import import_model
from hexqdq.ops.unit import Tensor
from hexqdq.partition.pipeline import partition
from hexqdq.partition.product import NpuPart, PartitionedModel
from hexqdq.quantize.pipeline import already_quantized
from hexqdq.quantize.product import QdqModel
from hexqdq.target import find_target
from tests.partition.execute import run_model, run_parts, unit_differences
from tests.partition.odd import ALL_NPU, ODD

STEP = 0.11 + 1e-6
"""The coarsest scale of the members: one step of a result."""


def cut(name: str) -> tuple[QdqModel, PartitionedModel]:
    qdq = already_quantized(import_model(ODD[name]))
    return qdq, partition(qdq, find_target("v73"))


def random_feed(tensor: Tensor, seed: int = 3) -> NDArray[np.generic]:
    generator = np.random.default_rng(seed)
    if tensor.dtype.is_integer:
        return generator.integers(tensor.dtype.low, tensor.dtype.high + 1, tensor.shape).astype(tensor.dtype.numpy)
    return generator.normal(0, 3, tensor.shape).astype(np.float32)


@pytest.mark.parametrize("name", ODD)
def test_parts_compute_what_the_model_computes(name: str) -> None:
    qdq, parts = cut(name)
    feeds = {tensor.name: random_feed(tensor) for tensor in parts.inputs}
    expected, found = run_model(qdq.model, feeds), run_parts(parts, feeds)
    for output, values in expected.items():
        step = 1 if values.dtype.kind in "iu" else STEP
        assert found[output].shape == values.shape and found[output].dtype == values.dtype
        assert np.abs(found[output].astype(np.float64) - values.astype(np.float64)).max() <= step


@pytest.mark.parametrize("name", ODD)
def test_units_are_within_one_step(name: str) -> None:
    qdq, parts = cut(name)
    feeds = {tensor.name: random_feed(tensor) for tensor in parts.inputs}
    for unit, steps in unit_differences(qdq.model, parts, feeds).items():
        assert steps.max() <= 1, unit


@pytest.mark.parametrize("name", ODD)
def test_every_node_is_decided(name: str) -> None:
    qdq, parts = cut(name)
    assert [decision.node for decision in parts.decisions] == [node.name for node in qdq.model.graph]
    count = sum(isinstance(part, NpuPart) for part in parts.parts)
    for decision in parts.decisions:
        assert (decision.segment is None) == bool(decision.reason)
        assert decision.segment is None or decision.segment < count


@pytest.mark.parametrize("name", sorted(ALL_NPU))
def test_whole_model_is_one_segment(name: str) -> None:
    _, parts = cut(name)
    assert sum(isinstance(part, NpuPart) for part in parts.parts) == 1
    on_cpu = {decision.op_type for decision in parts.decisions if decision.segment is None}
    assert on_cpu <= {"DequantizeLinear"}


REASONS = {
    "missing_q": ("Conv", "its float output 'c' is an output of the model; expected QuantizeLinear after it"),
    "float_read_twice": ("Conv", "its float output 'c' is read by QuantizeLinear 'QuantizeLinear_cq', Cos 'Cos_n'"),
    "split_without_q": ("Split", "its float output 't' goes to Cos 'Cos_n'; expected QuantizeLinear"),
    "two_qs": ("Conv", "expected one QuantizeLinear"),
    "inside_and_outside": ("Sin", "Sin is not among the ops that the NPU has a form for"),
    "movement_with_other_parameters": ("Flatten", "input and output must share scale and zero point"),
    "matmul_and_computed_addend": ("MatMul", "its float output 'm' goes to Add 'Add_a'; expected QuantizeLinear"),
    "clip_with_computed_bound": ("Clip", "input 1 'low' is float"),
    "sixteen_bits": ("Relu", "input 0 must be u8 or s8; found u16 'xq'"),
    "scales_per_channel": ("Relu", "input 0 must have one scale and zero point; found 2 scales on 'xq'"),
    "requantize_to_another_type": ("QuantizeLinear", "inputs and outputs must have one type; found s8 and u8"),
    "dq_shared_by_both_sides": ("Cos", "Cos is not among the ops that the NPU has a form for"),
}


@pytest.mark.parametrize("name", REASONS)
def test_reason_says_what_was_found(name: str) -> None:
    op_type, sentence = REASONS[name]
    _, parts = cut(name)
    reasons = [d.reason or "" for d in parts.decisions if d.op_type == op_type and d.segment is None]
    assert any(sentence in reason for reason in reasons), reasons


def test_float_edges_are_absorbed() -> None:
    _, parts = cut("plain")
    (part,) = parts.parts
    assert isinstance(part, NpuPart)
    assert [(edge.value, edge.is_float) for edge in part.inputs] == [("x", True)]
    assert [(edge.value, edge.is_float) for edge in part.outputs] == [("cd", True)]
    assert part.inputs[0].tensor.params is not None
    assert part.inputs[0].tensor.params.zero_point == (120,)
    assert [unit.op_type for unit in part.graph.units] == ["Conv"]


def test_bridge_over_the_cpu_makes_two_segments() -> None:
    _, parts = cut("host_bridge")
    assert [type(part).__name__ for part in parts.parts] == ["NpuPart", "HostPart", "NpuPart"]
