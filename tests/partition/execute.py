"""Runs a partitioned model on the numpy reference and onnxruntime, and the uncut model for comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime
from numpy.typing import NDArray

from hexqdq import numerics
from hexqdq.ops.reference import run, run_unit
from hexqdq.partition.product import NpuPart, PartitionedModel

Array = NDArray[Any]


def session(model: bytes) -> Any:
    """An onnxruntime session that computes the model as it is written."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def run_model(model: ir.Model, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs by name of the model in onnxruntime."""
    runner = session(ir.to_proto(model).SerializeToString())
    names = [output.name for output in runner.get_outputs()]
    return dict(zip(names, runner.run(names, dict(feeds)), strict=True))


def run_parts(model: PartitionedModel, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs by name of the parts in order."""
    values = dict(feeds)
    for part in model.parts:
        if isinstance(part, NpuPart):
            values |= _run_segment(part, values)
        else:
            results = session(part.model).run(list(part.outputs), {name: values[name] for name in part.inputs})
            values |= dict(zip(part.outputs, results, strict=True))
    return {tensor.name: values[tensor.name] for tensor in model.outputs}


def _run_segment(part: NpuPart, values: Mapping[str, Array]) -> dict[str, Array]:
    feeds = {}
    for edge in part.inputs:
        value = values[edge.value]
        if edge.is_float:
            assert edge.tensor.params is not None
            value = numerics.quantize(value, edge.tensor.params)
        feeds[edge.tensor.name] = value
    results = run(part.graph, feeds)
    outputs = {}
    for edge in part.outputs:
        value = results[edge.tensor.name]
        if edge.is_float:
            assert edge.tensor.params is not None
            value = numerics.dequantize(value, edge.tensor.params)
        outputs[edge.value] = value
    return outputs


def unit_differences(model: ir.Model, partitioned: PartitionedModel, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Per unit the absolute steps between the reference and onnxruntime, both given onnxruntime's integers."""
    units = [unit for part in partitioned.parts if isinstance(part, NpuPart) for unit in part.graph.units]
    names = {tensor.name for unit in units for tensor in (*unit.variable_inputs(), *unit.outputs)}
    watched = model.clone()
    made = {value.name: value for node in watched.graph for value in node.outputs}
    listed = {output.name for output in watched.graph.outputs}
    watched.graph.outputs.extend(made[name] for name in sorted(names) if name in made and name not in listed)
    values = {**feeds, **run_model(watched, feeds)}
    differences = {}
    for unit in units:
        results = run_unit(unit, [values[tensor.name] for tensor in unit.variable_inputs()])
        steps = [abs(r.astype(int) - values[t.name].astype(int)) for r, t in zip(results, unit.outputs, strict=True)]
        differences[unit.name] = np.concatenate([step.reshape(-1) for step in steps])
    return differences
