"""Running a context: float edges, parts in order, values freed, host parts in onnxruntime."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hexqdq import numerics
from hexqdq.compile.product import CompiledModel, HostPart
from hexqdq.context import file
from hexqdq.context.executors import make_executor
from hexqdq.context.run import Runner, last_uses
from hexqdq.errors import ContextError, ExecutorError
from hexqdq.ops import reference
from hexqdq.ops.unit import Tensor
from hexqdq.qtypes import QType
from tests.context.samples import INPUT, OUTPUT, abs_part, conv_graph, conv_model, sample_input


def runner(compiled: CompiledModel, session_options: Any = None) -> Runner:
    return Runner(file.read(file.to_bytes(compiled)), make_executor("reference"), session_options)


def expected(x: NDArray[np.float32]) -> NDArray[np.float32]:
    assert INPUT.params and OUTPUT.params
    integers = reference.run(conv_graph(), {"x_q": numerics.quantize(x, INPUT.params)})["y_q"]
    return numerics.dequantize(integers, OUTPUT.params)


def test_float_edges_are_quantized_and_dequantized() -> None:
    outputs = runner(conv_model()).run({"x": sample_input()})
    assert list(outputs) == ["y"]
    np.testing.assert_array_equal(outputs["y"], expected(sample_input()), strict=True)


def test_integer_edges_pass_as_they_are() -> None:
    compiled = conv_model()
    (part,) = compiled.parts
    assert not isinstance(part, HostPart)
    inputs = tuple(dataclasses.replace(edge, is_float=False) for edge in part.inputs)
    outputs = tuple(dataclasses.replace(edge, is_float=False) for edge in part.outputs)
    integer_model = dataclasses.replace(
        compiled,
        parts=(dataclasses.replace(part, inputs=inputs, outputs=outputs),),
        inputs=(Tensor("x", INPUT.shape, QType.U8),),
        outputs=(Tensor("y", OUTPUT.shape, QType.U8),),
    )
    x = np.random.default_rng(0).integers(0, 256, INPUT.shape, np.uint8)
    y = runner(integer_model).run({"x": x})["y"]
    np.testing.assert_array_equal(y, reference.run(conv_graph(), {"x_q": x})["y_q"], strict=True)


def test_host_parts_run_in_onnxruntime() -> None:
    outputs = runner(conv_model(host_parts=(abs_part(),))).run({"x": sample_input()})
    np.testing.assert_array_equal(outputs["y"], expected(sample_input()), strict=True)
    np.testing.assert_array_equal(outputs["z"], np.abs(expected(sample_input())), strict=True)


def test_values_are_freed_when_nothing_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = conv_model(host_parts=(abs_part(),))
    only_z = dataclasses.replace(compiled, outputs=compiled.outputs[1:])
    assert last_uses(file.read(file.to_bytes(only_z))) == [("x",), ("y",)]
    assert last_uses(file.read(file.to_bytes(compiled))) == [("x",), ()]
    assert list(runner(only_z).run({"x": sample_input()})) == ["z"]


def test_a_value_that_nothing_writes_is_told() -> None:
    compiled = conv_model(host_parts=(abs_part(),))
    backwards = dataclasses.replace(compiled, parts=compiled.parts[::-1])
    with pytest.raises(ContextError, match="value 'y' is read before any part writes it"):
        runner(backwards)
    with pytest.raises(ContextError, match="output 'z' is written by no part"):
        runner(dataclasses.replace(compiled, parts=compiled.parts[:1]))


def test_a_host_part_that_does_not_load_or_run_is_told() -> None:
    with pytest.raises(ExecutorError, match=r"CPU part 'bad'.*does not load"):
        runner(conv_model(host_parts=(HostPart("bad", b"no model", ("y",), ("z",)),)))
    wrong_name = dataclasses.replace(abs_part(), inputs=("x",))
    with pytest.raises(ExecutorError, match=r"CPU part 'abs'.*does not run"):
        runner(conv_model(host_parts=(wrong_name,))).run({"x": sample_input()})


def test_counters_are_those_of_the_executor() -> None:
    assert runner(conv_model()).last_counters() == {}


def test_close_reaches_every_segment() -> None:
    closed: list[str] = []

    class Recorder:
        last_counters = None

        def run(self, inputs: Sequence[Any]) -> list[Any]:
            return []

        def close(self) -> None:
            closed.append("closed")

    class Records:
        name = "recorder"

        def load(self, segment: object) -> Recorder:
            return Recorder()

    Runner(file.read(file.to_bytes(conv_model())), Records()).close()
    assert closed == ["closed"]
