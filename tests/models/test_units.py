"""Every unit of real models, given the integers that onnxruntime has there, is within a step of onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.zoo import MODELS, Model, Place
from hexqdq import driver
from hexqdq.ops import reference
from hexqdq.ops.unit import QuantUnit, as_array
from hexqdq.partition.product import NpuPart, PartitionedModel
from hexqdq.quantize.product import QdqModel
from tests.models.ties import exact_step, is_linear_resize, is_tie
from tests.models.zoo import marked, noise

Array = NDArray[Any]
Values = dict[str, Array]

MOST_DIFFERING = 0.002
"""Share of a whole model's integers that may be the one step away, linear Resize apart."""
TIES_CHECKED = 2000
"""Differing elements of a linear Resize, drawn, that are computed in exact arithmetic."""


def values_inside(qdq: QdqModel, names: list[str], feeds: Values) -> Values:
    """Values of the model by name as onnxruntime computes them, without any of its fusions."""
    import onnx
    import onnx_ir as ir
    import onnxruntime

    model = ir.to_proto(qdq.model)
    made = {output for node in model.graph.node for output in node.output}
    wanted = [name for name in dict.fromkeys(names) if name in made]
    del model.graph.output[:]
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in wanted)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return feeds | dict(zip(wanted, session.run(wanted, feeds), strict=True))


def differing(unit: QuantUnit, values: Values) -> int:
    """How many of the unit's integers are a step away; fails where one is farther."""
    inputs = [as_array(values[tensor.name], tensor) for tensor in unit.variable_inputs()]
    count = 0
    for tensor, ours in zip(unit.outputs, reference.run_unit(unit, inputs), strict=True):
        steps = np.abs(ours.astype(np.int64) - values[tensor.name].astype(np.int64))
        assert steps.max(initial=0) <= 1, f"{unit.op_type} {unit.name}: {steps.max()} steps"
        count += int(np.count_nonzero(steps))
    return count


def check_ties(unit: QuantUnit, values: Values) -> None:
    """A linear Resize differs only at exact ties, which RESCALE rounds up and onnxruntime to even."""
    (tensor,) = unit.variable_inputs()
    source = as_array(values[tensor.name], tensor)
    (ours,) = reference.run_unit(unit, [source])
    places = np.argwhere(ours != values[unit.output.name])
    for place in np.random.default_rng(0).permutation(places)[:TIES_CHECKED].tolist():
        assert is_tie(exact_step(unit, source, tuple(place))), f"{unit.name} at {place} is no tie"


@pytest.mark.parametrize("model", marked(MODELS))
def test_units_of(model: Model, shared: Path, tmp_path: Path) -> None:
    options = driver.Options(input_shapes=dict(model.shapes))
    products = driver.run_stages(Place(shared, tmp_path, None).quantized(model), options, last="partition").products
    partitioned: PartitionedModel = products["partition"]
    (part,) = partitioned.parts
    assert isinstance(part, NpuPart)
    rng = np.random.default_rng(0)
    feeds = {tensor.name: noise(tensor, rng) for tensor in partitioned.inputs}
    names = [tensor.name for unit in part.graph.units for tensor in (*unit.variable_inputs(), *unit.outputs)]
    values = values_inside(products["quantize"], names, feeds)
    steps = {unit: differing(unit, values) for unit in part.graph.units}
    resizes = [unit for unit in steps if is_linear_resize(unit)]
    for unit in resizes:
        check_ties(unit, values)
    others = [unit for unit in steps if unit not in resizes]
    count = sum(steps[unit] for unit in others)
    elements = sum(tensor.size for unit in others for tensor in unit.outputs)
    assert count <= MOST_DIFFERING * elements, f"{count} of {elements}"
