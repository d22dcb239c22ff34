"""ImportedModel and calibration samples -> QdqModel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import onnx_ir as ir

from hexqdq.errors import CalibrationError, QuantizationError
from hexqdq.import_.product import ImportedModel, model_digest
from hexqdq.passes import Pass, run_passes
from hexqdq.quantize.calibration.batches import of_model_batch
from hexqdq.quantize.calibration.calibrate import Progress as Counter
from hexqdq.quantize.calibration.calibrate import Sample, calibrate
from hexqdq.quantize.calibration.ranges import Ranges
from hexqdq.quantize.calibration.replay import replayable
from hexqdq.quantize.calibration.visible import SoftmaxWatch
from hexqdq.quantize.draft import Draft, Repair
from hexqdq.quantize.mixed.mix import mix, wants_mix
from hexqdq.quantize.planning.choices import chosen
from hexqdq.quantize.planning.graph import QDQ_OPS
from hexqdq.quantize.planning.layout import laid_out
from hexqdq.quantize.planning.masks import hidden_values
from hexqdq.quantize.planning.plan import Range, plan
from hexqdq.quantize.planning.select import decisions, select
from hexqdq.quantize.product import QdqModel
from hexqdq.quantize.recipe import Recipe
from hexqdq.quantize.repair.adaround import adaround
from hexqdq.quantize.repair.awq import awq
from hexqdq.quantize.repair.bias_correct import bias_correct
from hexqdq.quantize.repair.equalize import equalize
from hexqdq.quantize.repair.gptq import gptq
from hexqdq.quantize.repair.smooth import smooth
from hexqdq.quantize.scaled import marked
from hexqdq.quantize.verify import qdq_problems
from hexqdq.quantize.writing.graph import GraphWriter
from hexqdq.quantize.writing.insert import QdqWriter
from hexqdq.quantize.writing.products import ProductWriter
from hexqdq.report import Progress

T = TypeVar("T")

Adjust = Callable[[Mapping[str, Range]], Mapping[str, Range]]
"""Gives the ranges to use in place of calibrated ones."""

ON_FLOATS: tuple[Repair, ...] = (
    Repair("equalize", "equalize", lambda recipe: recipe.equalize, equalize),
    Repair("smooth", "smooth", lambda recipe: recipe.smooth, smooth),  # after equalize: it leaves what gains nothing
    Repair("scale for few bits", "awq", lambda recipe: recipe.awq, awq),
)
"""Before ranges are known: the float model becomes an equal one that quantizes better."""
ON_RANGES: tuple[Repair, ...] = (
    Repair("mix precision", "mixed", wants_mix, mix),  # first: roundings and corrections depend on types
    Repair("round by GPTQ", "gptq", lambda recipe: recipe.gptq, gptq),
    # starts from what GPTQ leaves
    Repair("round up or down", "adaround", lambda recipe: recipe.adaround, adaround),
    # last: takes out what the others left
    Repair("correct biases", "bias_correct", lambda recipe: recipe.bias_correct, bias_correct),
)
"""Once ranges are known: types, rounding of weights, biases."""


def is_quantized(model: ir.Model) -> bool:
    """Whether the model holds QuantizeLinear or DequantizeLinear."""
    return any(node.op_type in QDQ_OPS for node in model.graph)


def is_complete(model: ir.Model) -> bool:
    """Whether all that is quantized has Q and DQ."""
    made = plan(select(model.graph, Recipe()))
    return made.complete >= set(made.reads)


def already_quantized(imported: ImportedModel) -> QdqModel:
    """The model as it came: its Q and DQ are kept to the bit."""
    return QdqModel(imported.model, imported.digest, imported.origin)


def quantize(
    imported: ImportedModel,
    calibration: Iterable[Sample] | None,
    recipe: Recipe | None = None,
    progress: Progress | None = None,
    ranges: Ranges | Mapping[str, Range] | None = None,
    adjust: Adjust | None = None,
) -> QdqModel:
    """The model as a QDQ graph of the recipe.

    Q and DQ that are there are kept to the bit, and the float rest is quantized around them; where there
    is no rest the model passes unchanged.

    ``ranges`` known before are taken instead of those of the samples, a mapping for types of any width, but
    for values that repair passes scale, whose numbers are no longer the float model's; without samples they
    are enough for a recipe that repairs nothing. ``adjust`` gives others in place of either. Raises
    CalibrationError where the samples do not fit the model or set no range.
    """
    if is_quantized(imported.model) and is_complete(imported.model):
        return already_quantized(imported)
    laid = laid_out(imported, recipe or Recipe())
    resolved, choices = chosen(laid, recipe or Recipe())
    draft = Draft(laid, resolved, choices=choices)
    repairs = [repair for repair in (*ON_FLOATS, *ON_RANGES) if repair.wanted(draft.recipe)]
    if calibration is None:
        _require_no_need_of_samples(repairs, ranges)
        return assemble(_ranged(draft, ranges or {}, adjust))
    with replayable(of_model_batch(calibration, imported.model.graph)) as samples:
        draft = _repaired(draft, ON_FLOATS, samples, progress)
        found = _found(draft, ranges, marked(draft.imported.model) - marked(imported.model), samples, progress)
        return assemble(_repaired(_ranged(draft, found, adjust), ON_RANGES, samples, progress))


def _require_no_need_of_samples(repairs: Sequence[Repair], ranges: object | None) -> None:
    needs, other = "ranges need samples", ""
    if ranges is not None:
        if not repairs:
            return
        needs = f"the recipe's {', '.join(repair.option for repair in repairs)} need samples"
        options = " ".join(f"--no-{repair.option.replace('_', '-')}" for repair in repairs)
        other = f", or switch off what needs them: {options}"
    raise CalibrationError("calibration", f"{needs}, and there are none", f"give calibration data{other}")


def _repaired(draft: Draft, repairs: Iterable[Repair], samples: Iterable[Sample], progress: Progress | None) -> Draft:
    for repair in repairs:
        if repair.wanted(draft.recipe):
            draft = repair.run(draft, samples, _told(repair.what, progress))
    return draft


def _found(
    draft: Draft,
    known: Ranges | Mapping[str, Range] | None,
    scaled: frozenset[str],
    samples: Iterable[Sample],
    progress: Progress | None,
) -> Ranges:
    """The known ranges of all but ``scaled`` values, whose ranges are calibrated, as all are where none are known."""
    if known is None:
        return _calibrated(draft, samples, progress)
    ranges = known if isinstance(known, Ranges) else Ranges(known, known)
    if scaled.isdisjoint(values_to_calibrate(draft.imported, draft.recipe)):
        return ranges
    found = _calibrated(draft, samples, progress)
    return ranges.without(scaled).over(found.without(set(found.narrow) - scaled))


def _calibrated(draft: Draft, samples: Iterable[Sample], progress: Progress | None) -> Ranges:
    model, recipe = draft.imported.model, draft.recipe
    made = plan(select(model.graph, recipe))
    told = _told("calibrate", progress)
    masks = [str(value.name) for value in hidden_values(model.graph)]
    watch = SoftmaxWatch(model, made)
    names = tuple(made.values)
    return watch.bounded(calibrate(model, names, samples, recipe.method, told, recipe.knobs(), masks, watch))


def _ranged(draft: Draft, found: Ranges | Mapping[str, Range], adjust: Adjust | None) -> Draft:
    """The draft with its ranges; raises QuantizationError where one is missing."""
    ranges = found if isinstance(found, Ranges) else Ranges(found, found)
    missing = set(values_to_calibrate(draft.imported, draft.recipe)) - (set(ranges.narrow) & set(ranges.wide))
    if missing:
        raise QuantizationError(f"tensor {min(missing)!r}", "has no range", "calibrate again with this recipe")
    if adjust is not None:
        ranges = Ranges(adjust(ranges.narrow), adjust(ranges.wide))
    return replace(draft, ranges=ranges.narrow, wide_ranges=ranges.wide)


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
    write = GraphWriter(writer, selection, made, _with_held(draft, products.holds))
    run_passes(model, (Pass("insert", "the plan is complete", write),), verify=qdq_problems)
    source = products.origin(draft.imported.origin)
    origin = dict(source)
    origin |= {name: source.get(served or "", ()) for name, served in writer.made.items()}
    ranges, wide_ranges = dict(draft.ranges), dict(draft.wide_ranges)
    return QdqModel(model, model_digest(model), origin, ranges, wide_ranges, floats, draft.mixed)


def _with_held(draft: Draft, holds: Mapping[str, str]) -> Draft:
    """The draft with what it knows of values told of the new values that hold the same elements."""

    def told(known: Mapping[str, T]) -> dict[str, T]:
        return {**known, **{new: known[old] for new, old in holds.items() if old in known}}

    ranges, wide_ranges = told(draft.ranges), told(draft.wide_ranges)
    return replace(draft, ranges=ranges, wide_ranges=wide_ranges, types=told(draft.types))


def values_to_calibrate(imported: ImportedModel, recipe: Recipe) -> tuple[str, ...]:
    """The values whose ranges ``assemble`` needs."""
    return tuple(plan(select(imported.model.graph, recipe)).values)
