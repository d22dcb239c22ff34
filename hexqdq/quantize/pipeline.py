"""ImportedModel and calibration samples -> QdqModel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from hexqdq.errors import CalibrationError, QuantizationError
from hexqdq.import_.product import ImportedModel, model_digest
from hexqdq.passes import Pass, run_passes
from hexqdq.qtypes import QuantParams
from hexqdq.quantize.calibration.calibrate import Progress as Counter
from hexqdq.quantize.calibration.calibrate import Sample, calibrate
from hexqdq.quantize.calibration.replay import replayable
from hexqdq.quantize.contractions import has_constant_weights, quantize_contraction
from hexqdq.quantize.graph import QDQ_OPS, constant, input_at, spec_of
from hexqdq.quantize.insert import QdqWriter
from hexqdq.quantize.plan import Plan, Range, group_params, plan, span_params
from hexqdq.quantize.product import QdqModel
from hexqdq.quantize.recipe import Recipe
from hexqdq.quantize.repair.bias_correct import bias_corrections
from hexqdq.quantize.select import Selection, decisions, select
from hexqdq.quantize.verify import qdq_problems
from hexqdq.quantize.weights import quantize_constant
from hexqdq.report import Progress

Corrections = Mapping[str, NDArray[np.float64]]
_NONE: Corrections = MappingProxyType({})


def is_quantized(model: ir.Model) -> bool:
    """Whether the model holds QuantizeLinear or DequantizeLinear."""
    return any(node.op_type in QDQ_OPS for node in model.graph)


def already_quantized(imported: ImportedModel) -> QdqModel:
    """The model as it came: its Q and DQ are kept to the bit."""
    return QdqModel(imported.model, imported.digest, imported.origin)


def quantize(
    imported: ImportedModel,
    calibration: Iterable[Sample] | None,
    recipe: Recipe | None = None,
    progress: Progress | None = None,
    ranges: Mapping[str, Range] | None = None,
) -> QdqModel:
    """The model as a QDQ graph of the recipe; one that holds Q/DQ already passes unchanged.

    ``ranges`` known before are taken instead of those of the samples; without samples they are enough
    for a recipe that corrects no biases. Raises CalibrationError where the samples do not fit the
    model or set no range.
    """
    if is_quantized(imported.model):
        return already_quantized(imported)
    recipe = recipe or Recipe()
    if calibration is None and (ranges is None or recipe.bias_correct):
        needs, other = "ranges need samples", ""
        if ranges is not None:
            needs, other = "bias correction needs samples", ", or set bias_correct to false (--no-bias-correct)"
        raise CalibrationError("calibration", f"{needs}, and there are none", f"give calibration data{other}")
    if ranges is not None and calibration is None:
        return assemble(imported, recipe, _of_all(imported, recipe, ranges))
    with replayable(calibration or ()) as samples:
        if ranges is None:
            ranges = _calibrated(imported, recipe, samples, _told("calibrate", progress))
        ranges = _of_all(imported, recipe, ranges)
        corrections = {}
        if recipe.bias_correct:
            tell = _told("correct biases", progress)
            corrections = bias_corrections(imported, recipe, ranges, samples, tell)
        return assemble(imported, recipe, ranges, corrections)


def _calibrated(
    imported: ImportedModel, recipe: Recipe, samples: Iterable[Sample], progress: Counter | None
) -> dict[str, Range]:
    names = values_to_calibrate(imported, recipe)
    return calibrate(imported.model, names, samples, recipe.method, progress, recipe.knobs())


def _of_all(imported: ImportedModel, recipe: Recipe, ranges: Mapping[str, Range]) -> Mapping[str, Range]:
    """The ranges; raises QuantizationError where one is missing."""
    missing = set(values_to_calibrate(imported, recipe)) - set(ranges)
    if missing:
        raise QuantizationError(f"tensor {min(missing)!r}", "has no range", "calibrate again with this recipe")
    return ranges


def _told(what: str, progress: Progress | None) -> Counter | None:
    """A counter of samples that tells of them as ``what``."""
    return None if progress is None else lambda done, total: progress(what, done, total or 0)


def assemble(
    imported: ImportedModel, recipe: Recipe, ranges: Mapping[str, Range], corrections: Corrections = _NONE
) -> QdqModel:
    """The QDQ graph that known ranges give, ``corrections`` [channels] added to the biases of nodes by name."""
    model = imported.model.clone()
    selection = select(model.graph, recipe)
    made = plan(selection)
    writer = QdqWriter(model.graph)
    floats = decisions(selection, made.still)
    write = _Write(writer, selection, made, recipe, ranges, corrections)
    run_passes(model, (Pass("insert", "the plan is complete", write),), verify=qdq_problems)
    origin = dict(imported.origin)
    origin |= {name: imported.origin.get(served or "", ()) for name, served in writer.made.items()}
    return QdqModel(model, model_digest(model), origin, dict(ranges), floats)


def values_to_calibrate(imported: ImportedModel, recipe: Recipe) -> tuple[str, ...]:
    """The values whose ranges ``assemble`` needs."""
    return tuple(plan(select(imported.model.graph, recipe)).values)


class _Write:
    """The plan written into the graph: constants first, while their consumers still read them."""

    def __init__(
        self,
        writer: QdqWriter,
        selection: Selection,
        made: Plan,
        recipe: Recipe,
        ranges: Mapping[str, Range],
        corrections: Corrections,
    ) -> None:
        self.writer, self.selection, self.plan, self.recipe = writer, selection, made, recipe
        self.corrections = corrections
        self.params = group_params(made, ranges, recipe.activations)
        self.ends, self.movements = set(selection.ends.values()), set(made.movements)

    def __call__(self, model: ir.Model) -> int:
        for node in self.selection.ends:
            self._constants(node)
        for node in self.plan.movements:
            self._moved_constants(node)
        for name, value in _values(model.graph).items():
            if name in self.plan.values:
                self._pair(value)
        return len(self.writer.made)

    def _constants(self, node: ir.Node) -> None:
        for index in self.plan.reads[node]:
            values = constant(input_at(node, index))
            if values is not None:
                params = span_params(float(values.min()), float(values.max()), self.recipe.activations)
                self.writer.constant(node, index, quantize_constant(values, params), f"{node.name}_input{index}")
        if has_constant_weights(node) and 1 not in self.plan.reads[node]:
            self._contraction(node)

    def _moved_constants(self, node: ir.Node) -> None:
        """Constants that a movement puts among its data get the data's parameters."""
        spec = spec_of(node)
        assert spec is not None
        params = self._params_of(node.outputs[0])
        for index in (*self.plan.reads[node], *spec.value_inputs):
            values = constant(input_at(node, index))
            if values is not None:
                self.writer.constant(node, index, quantize_constant(values, params), f"{node.name}_input{index}")

    def _contraction(self, node: ir.Node) -> None:
        correction = self.corrections.get(str(node.name))
        made = quantize_contraction(node, self.selection, self.recipe, self._input_scale(node), correction)
        self.writer.constant(node, 1, made.weights, f"{node.name}_weight")
        if made.bias is not None:
            self.writer.constant(made.reader, made.index, made.bias, f"{node.name}_bias")

    def _input_scale(self, node: ir.Node) -> float:
        data = node.inputs[0]
        assert data is not None
        params = self._params_of(data)
        return params.scale[0]

    def _params_of(self, value: ir.Value) -> QuantParams:
        return self.params[self.plan.values[str(value.name)]]

    def _pair(self, value: ir.Value) -> None:
        """Quantized results are read by everyone as such; inputs and float results only where asked for."""
        group = self.plan.values[str(value.name)]
        producer = value.producer()
        ours = value in self.ends or producer in self.movements
        readers = None if ours else self._readers(value)
        self.writer.pair(value, self.params[group], group, readers)

    def _readers(self, value: ir.Value) -> list[tuple[ir.Node, int]]:
        uses = [(use.node, use.idx) for use in value.uses()]
        return [(node, index) for node, index in uses if index in self.plan.reads.get(node, ())]


def _values(graph: ir.Graph) -> dict[str, ir.Value]:
    computed = (value for node in graph for value in node.outputs)
    return {str(value.name): value for value in (*graph.inputs, *computed)}
