"""Runs a way to round over every contraction of a draft."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

import onnx_ir as ir

from hexqdq.quantize.calibration.calibrate import Progress, Sample
from hexqdq.quantize.draft import Draft
from hexqdq.quantize.repair.rounding.exact import Reals
from hexqdq.quantize.repair.rounding.moments import collect
from hexqdq.quantize.repair.rounding.problem import Problem
from hexqdq.quantize.repair.rounding.units import packed, units

Solver = Callable[[Problem], Reals]


def solved(draft: Draft, samples: Iterable[Sample], progress: Progress | None, damping: float, solver: Solver) -> Draft:
    """The draft with weights that the solver rounds.

    Streams: each group of units whose moments fit memory costs a run over the samples.
    """
    weights = dict(draft.weights)
    for group in packed(units(draft)):
        layers = [layer for unit in group for layer in unit.layers]
        model = _cut(draft.imported.model, {layer.value for layer in layers})
        moments = collect(model, layers, samples, progress)
        for unit in group:
            rounded = unit.rounded(solver(unit.problem(moments, damping)))
            weights |= {layer.node: rounded for layer in unit.layers}
    return replace(draft, weights=weights)


def _cut(model: ir.Model, names: Collection[str]) -> ir.Model:
    """The model with what it takes to compute the named values and no more."""
    from onnx_ir.passes.common import RemoveUnusedNodesPass

    cut = model.clone()
    wanted = [value for node in cut.graph for value in node.outputs if value.name in names]
    if wanted:
        cut.graph.outputs.clear()
        cut.graph.outputs.extend(wanted)
        RemoveUnusedNodesPass()(cut)
    return cut
