"""Whole models on every executor: what it takes to build one, feed it and compare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq import driver, numerics
from hexqdq.app.calibration.source import open_calibration
from hexqdq.app.convert import signature
from hexqdq.app.session import InferenceSession
from hexqdq.import_.product import ImportedModel
from hexqdq.ops import reference
from hexqdq.partition.product import NpuPart, PartitionedModel
from hexqdq.quantize.recipe import Recipe
from tests.ops.ladder import tosa_stage

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Built:
    """A model compiled into one NPU segment, with the graph of its units."""

    context: bytes
    part: NpuPart
    qdq: bytes


def build(model: Path, shapes: Mapping[str, tuple[int, ...]], calibration: Path | None = None) -> Built:
    """Runs every stage, a float model in 8 bits; the whole model must be one segment."""
    import onnx_ir as ir

    def feeds(imported: ImportedModel) -> Iterable[driver.Feed]:
        assert calibration is not None
        return open_calibration(calibration, signature(imported))

    recipe = Recipe.preset("a8w8")
    options = driver.Options(input_shapes=shapes, calibration=feeds if calibration else None, recipe=recipe)
    products = driver.run_stages(model, options).products
    partitioned: PartitionedModel = products["partition"]
    (part,) = partitioned.parts
    assert isinstance(part, NpuPart)
    return Built(products["context"], part, ir.to_proto(products["quantize"].model).SerializeToString())


def outputs(built: Built, executor: str, samples: Sequence[Array]) -> Array:
    """The model's only output for each sample, stacked."""
    session = InferenceSession(built.context, provider_options=[{"executor": executor}])
    (name,) = (value.name for value in session.get_inputs())
    return np.concatenate([np.asarray(session.run(None, {name: sample})[0]) for sample in samples])


def differing_from_tosa(built: Built, samples: Sequence[Array]) -> int:
    """How many integers of the TOSA reference model differ from the numpy reference's."""
    (edge,), graph = built.part.inputs, built.part.graph
    differing = 0
    with tosa_stage(graph) as in_tosa:
        for sample in samples:
            if edge.is_float:
                assert edge.tensor.params is not None
                sample = numerics.quantize(sample, edge.tensor.params)
            feed = {edge.tensor.name: sample}
            (found,), (expected,) = in_tosa(feed), reference.run(graph, feed).values()
            differing += int(np.count_nonzero(np.asarray(found) != expected))
    return differing


def onnxruntime_outputs(model: bytes, samples: Sequence[Array]) -> Array:
    """onnxruntime's float reading of the same QDQ model, stacked."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    (name,) = (value.name for value in session.get_inputs())
    return np.concatenate([np.asarray(session.run(None, {name: sample})[0]) for sample in samples])
