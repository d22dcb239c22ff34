"""Graphs inside If, Loop and Scan stay float, and what they read of the outer graph stays right."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from numpy.typing import NDArray

from hexqdq.import_.pipeline import import_model
from hexqdq.import_.product import ImportedModel
from hexqdq.quantize.pipeline import quantize
from hexqdq.quantize.planning.graph import QDQ_OPS, inner_nodes
from hexqdq.quantize.recipe import Recipe
from tests.import_.models import outputs
from tests.quantize.graphs import normal
from tests.quantize.inner import CHOOSES, LOOPS, held

ALL = {**CHOOSES, **LOOPS}


def feeds(imported: ImportedModel, count: int = 8) -> list[dict[str, NDArray[Any]]]:
    def one(value: ir.Value, seed: int) -> NDArray[Any]:
        if value.dtype == ir.DataType.BOOL:
            return np.array(seed % 2 == 0)
        assert value.shape is not None
        return normal(*value.shape.numpy(), seed=seed + 10)

    return [{str(v.name): one(v, seed) for v in imported.model.graph.inputs} for seed in range(count)]


@pytest.mark.parametrize("name", ALL)
def test_quantized_model_computes_nearly_the_same(name: str) -> None:
    source = held(ALL[name])
    imported = import_model(source)
    samples = feeds(imported)
    qdq = quantize(imported, samples, Recipe(method="minmax"))
    onnx.checker.check_model(ir.to_proto(qdq.model), full_check=True)
    assert any(node.op_type in QDQ_OPS for node in qdq.model.graph)
    exact = [np.stack(values) for values in zip(*(outputs(source, sample) for sample in samples), strict=True)]
    found = [np.stack(values) for values in zip(*(outputs(qdq.model, sample) for sample in samples), strict=True)]
    for one, other in zip(exact, found, strict=True):
        np.testing.assert_allclose(other, one, rtol=0, atol=0.03 * float(np.abs(one).max()))


@pytest.mark.parametrize("name", ALL)
def test_inner_nodes_stay_float_each_with_its_reason(name: str) -> None:
    imported = import_model(held(ALL[name]))
    qdq = quantize(imported, feeds(imported), Recipe(method="minmax"))
    reasons = {decision.node: decision.reason for decision in qdq.decisions}
    (holder,) = (node for node in qdq.model.graph if next(inner_nodes(node), None) is not None)
    assert reasons[str(holder.name)] == f"{holder.op_type} holds graphs, and inner graphs stay float"
    inside = list(inner_nodes(holder))
    assert inside and not any(node.op_type in QDQ_OPS for node in inside)
    said = f"it lies inside {holder.op_type} {holder.name!r}, and inner graphs stay float"
    assert {str(node.name): reasons[str(node.name)] for node in inside} == {str(n.name): said for n in inside}


def test_ranges_are_of_both_branches() -> None:
    source = held(CHOOSES["captured"])
    imported = import_model(source)
    samples = feeds(imported)
    qdq = quantize(imported, samples, Recipe(method="minmax"))
    found = [outputs(source, sample)[1] for sample in samples]
    extremes = (min(float(r.min()) for r in found), max(float(r.max()) for r in found))
    assert qdq.ranges["r"] == pytest.approx(extremes, rel=1e-6)
