"""ImportedModel and calibration samples -> QdqModel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import onnx_ir as ir

from hexqdq.errors import CalibrationError, QuantizationError
from hexqdq.import_.product import ImportedModel, model_digest
from hexqdq.ops.traits import Trait
from hexqdq.passes import Pass, run_passes
from hexqdq.qtypes import QuantParams
from hexqdq.quantize.calibration.calibrate import Progress as Counter
from hexqdq.quantize.calibration.calibrate import Sample, calibrate
from hexqdq.quantize.calibration.replay import replayable
from hexqdq.quantize.draft import Draft, Repair
from hexqdq.quantize.planning.graph import QDQ_OPS, constant, input_at, results, spec_of
from hexqdq.quantize.planning.plan import Plan, Range, group_params, plan, span_params
from hexqdq.quantize.planning.select import Selection, decisions, select
from hexqdq.quantize.product import QdqModel
from hexqdq.quantize.recipe import Recipe
from hexqdq.quantize.repair.bias_correct import bias_correct
from hexqdq.quantize.verify import qdq_problems
from hexqdq.quantize.writing.cells import Placed, has_trait, quantize_normalization, quantize_recurrence
from hexqdq.quantize.writing.contractions import has_constant_weights, quantize_contraction
from hexqdq.quantize.writing.insert import QdqWriter
from hexqdq.quantize.writing.products import ProductWriter
from hexqdq.quantize.writing.weights import quantize_constant
from hexqdq.report import Progress

ON_FLOATS: tuple[Repair, ...] = ()
"""Before ranges are known: the float model becomes an equal one that quantizes better."""
ON_RANGES: tuple[Repair, ...] = (
    Repair("correct biases", lambda recipe: recipe.bias_correct, bias_correct),  # last: takes out what the others left
)
"""Once ranges are known: types, rounding of weights, biases."""


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
    for a recipe that repairs nothing. Raises CalibrationError where the samples do not fit the
    model or set no range.
    """
    if is_quantized(imported.model):
        return already_quantized(imported)
    draft = Draft(imported, recipe or Recipe())
    repairs = [repair for repair in (*ON_FLOATS, *ON_RANGES) if repair.wanted(draft.recipe)]
    if calibration is None:
        _require_no_need_of_samples(repairs, ranges)
        return assemble(replace(draft, ranges=_of_all(draft, ranges or {})))
    with replayable(calibration) as samples:
        draft = _repaired(draft, ON_FLOATS, samples, progress)
        found = ranges if ranges is not None else _calibrated(draft, samples, _told("calibrate", progress))
        draft = replace(draft, ranges=_of_all(draft, found))
        return assemble(_repaired(draft, ON_RANGES, samples, progress))


def _require_no_need_of_samples(repairs: Sequence[Repair], ranges: Mapping[str, Range] | None) -> None:
    needs, other = "ranges need samples", ""
    if ranges is not None:
        if not repairs:
            return
        needs = f"the recipe's pass {repairs[0].what!r} needs samples"
        other = ", or switch the pass off (--no-bias-correct and kin)"
    raise CalibrationError("calibration", f"{needs}, and there are none", f"give calibration data{other}")


def _repaired(draft: Draft, repairs: Iterable[Repair], samples: Iterable[Sample], progress: Progress | None) -> Draft:
    for repair in repairs:
        if repair.wanted(draft.recipe):
            draft = repair.run(draft, samples, _told(repair.what, progress))
    return draft


def _calibrated(draft: Draft, samples: Iterable[Sample], progress: Counter | None) -> dict[str, Range]:
    names = values_to_calibrate(draft.imported, draft.recipe)
    return calibrate(draft.imported.model, names, samples, draft.recipe.method, progress, draft.recipe.knobs())


def _of_all(draft: Draft, ranges: Mapping[str, Range]) -> Mapping[str, Range]:
    """The ranges; raises QuantizationError where one is missing."""
    missing = set(values_to_calibrate(draft.imported, draft.recipe)) - set(ranges)
    if missing:
        raise QuantizationError(f"tensor {min(missing)!r}", "has no range", "calibrate again with this recipe")
    return ranges


def _told(what: str, progress: Progress | None) -> Counter | None:
    """A counter of samples that tells of them as ``what``."""
    return None if progress is None else lambda done, total: progress(what, done, total or 0)


def assemble(draft: Draft) -> QdqModel:
    """The QDQ graph of a draft whose ranges are known."""
    model = draft.imported.model.clone()
    products = ProductWriter(model.graph, draft.recipe)
    products.write()
    selection = select(model.graph, draft.recipe)
    made = plan(selection)
    writer = QdqWriter(model.graph)
    floats = decisions(selection, made.still)
    write = _Write(writer, selection, made, _with_held(draft, products.holds))
    run_passes(model, (Pass("insert", "the plan is complete", write),), verify=qdq_problems)
    source = products.origin(draft.imported.origin)
    origin = dict(source)
    origin |= {name: source.get(served or "", ()) for name, served in writer.made.items()}
    return QdqModel(model, model_digest(model), origin, dict(draft.ranges), floats)


def _with_held(draft: Draft, holds: Mapping[str, str]) -> Draft:
    """The draft with what it knows of values told of the new values that hold the same elements."""
    ranges = {new: draft.ranges[old] for new, old in holds.items() if old in draft.ranges}
    types = {new: draft.types[old] for new, old in holds.items() if old in draft.types}
    return replace(draft, ranges={**draft.ranges, **ranges}, types={**draft.types, **types})


def values_to_calibrate(imported: ImportedModel, recipe: Recipe) -> tuple[str, ...]:
    """The values whose ranges ``assemble`` needs."""
    return tuple(plan(select(imported.model.graph, recipe)).values)


class _Write:
    """The plan written into the graph: constants first, while their consumers still read them."""

    def __init__(self, writer: QdqWriter, selection: Selection, made: Plan, draft: Draft) -> None:
        self.writer, self.selection, self.plan, self.draft = writer, selection, made, draft
        self.params = group_params(made, draft.ranges, draft.recipe.activations)
        self.ends, self.movements = set(selection.results()), set(made.movements)

    def __call__(self, model: ir.Model) -> int:
        for node in (*self.selection.ends, *self.selection.indices):
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
                params = span_params(float(values.min()), float(values.max()), self.draft.recipe.activations)
                self.writer.constant(node, index, quantize_constant(values, params), f"{node.name}_input{index}")
        if has_constant_weights(node) and 1 not in self.plan.reads[node]:
            self._contraction(node)
        for position, what, made in self._cell(node):
            self.writer.constant(node, position, made, f"{node.name}_{what}")

    def _moved_constants(self, node: ir.Node) -> None:
        """Constants that a movement puts among its data get the data's parameters."""
        spec = spec_of(node)
        assert spec is not None
        params = self._params_of(results(node)[0])
        for index in (*self.plan.reads[node], *spec.value_inputs):
            values = constant(input_at(node, index))
            if values is not None:
                self.writer.constant(node, index, quantize_constant(values, params), f"{node.name}_input{index}")

    def _contraction(self, node: ir.Node) -> None:
        made = quantize_contraction(node, self.selection, self.draft, self._input_scale(node))
        self.writer.constant(node, 1, made.weights, f"{node.name}_weight")
        if made.bias is not None:
            self.writer.constant(made.reader, made.index, made.bias, f"{node.name}_bias")

    def _cell(self, node: ir.Node) -> Iterator[Placed]:
        recipe = self.draft.recipe
        if has_trait(node, Trait.NORMALIZATION):
            return quantize_normalization(node, recipe, self._input_scale(node))
        if has_trait(node, Trait.RECURRENT):
            state_scale = self._params_of(results(node)[0]).scale[0]
            return quantize_recurrence(node, recipe, self._input_scale(node), state_scale)
        return iter(())

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
