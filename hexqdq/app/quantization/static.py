"""``quantize_static``: calibrates a float model and writes it with Q/DQ."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir

from hexqdq.app.quantization.calibrate import CalibrationDataReader, CalibrationMethod, Feeds
from hexqdq.app.quantization.extra import Request, request_of
from hexqdq.app.quantization.types import QuantFormat, QuantType, is_named, our_type
from hexqdq.errors import CalibrationError, UsageError
from hexqdq.import_.passes.names import name_nodes
from hexqdq.import_.pipeline import import_model
from hexqdq.import_.product import ImportedModel
from hexqdq.import_.read import read_model
from hexqdq.quantize.calibration.ranges import Ranges, SavedRanges
from hexqdq.quantize.observers.base import Range
from hexqdq.quantize.overrides import ACTIVATION_TYPES, WEIGHT_TYPES
from hexqdq.quantize.pipeline import quantize
from hexqdq.quantize.planning.graph import constant, input_at
from hexqdq.quantize.product import QdqModel
from hexqdq.quantize.recipe import Recipe
from hexqdq.quantize.writing.save import save

METHODS = {"MinMax": "minmax", "Entropy": "entropy", "Percentile": "percentile"}
PERCENTILE = 99.999
"""onnxruntime's default."""


@dataclass(frozen=True)
class Choice:
    """Which nodes are quantized: those of the names and op types (all where empty) that are not excluded."""

    op_types: Collection[str] = ()
    names: Collection[str] = ()
    excluded: Collection[str] = ()
    only_constant_weights: bool = False

    def kept_float(self, imported: ImportedModel, source_types: dict[str, str]) -> Iterator[str]:
        """The nodes of the canonical model that stay float; each stands for the source's nodes that it comes from."""
        for node in imported.model.graph:
            sources = imported.origin.get(str(node.name)) or (str(node.name),)
            types = {node.op_type, *(source_types[name] for name in sources if name in source_types)}
            if self._leaves_out(set(sources), types) or (self.only_constant_weights and _is_product_of_two(node)):
                yield str(node.name)

    def _leaves_out(self, sources: set[str], types: set[str]) -> bool:
        named = not self.names or not sources.isdisjoint(self.names)
        typed = not self.op_types or not types.isdisjoint(self.op_types)
        return not (named and typed) or not sources.isdisjoint(self.excluded)

    def check(self, source_types: dict[str, str]) -> None:
        """Raises UsageError where a name is none of the source's."""
        for argument, names in (("nodes_to_quantize", self.names), ("nodes_to_exclude", self.excluded)):
            for name in names:
                if name not in source_types:
                    raise UsageError(argument, f"names {name!r}, which is no node of the model", "correct the name")


def quantize_static(
    model_input: str | Path | onnx.ModelProto,
    model_output: str | Path,
    calibration_data_reader: CalibrationDataReader | None = None,
    quant_format: QuantFormat = QuantFormat.QDQ,
    op_types_to_quantize: Sequence[str] | None = None,
    per_channel: bool = False,
    reduce_range: bool = False,
    activation_type: QuantType = QuantType.QInt8,
    weight_type: QuantType = QuantType.QInt8,
    nodes_to_quantize: Sequence[str] | None = None,
    nodes_to_exclude: Sequence[str] | None = None,
    use_external_data_format: bool = False,
    calibrate_method: CalibrationMethod = CalibrationMethod.MinMax,
    calibration_providers: Sequence[str] | None = None,
    extra_options: dict[str, Any] | None = None,
    calibration_cache_path: str | Path | None = None,
) -> None:
    """Calibrates a float model and writes it with Q/DQ; arguments and defaults are onnxruntime's.

    The written model has the static shapes of the first sample. ``calibration_cache_path`` is a file of
    ranges, read where it exists, else written; without a reader biases are then left as they are.
    Raises UsageError for what is not supported, by name.
    """
    _refuse(quant_format, reduce_range, calibration_providers)
    request = request_of(extra_options)
    recipe = _recipe(request, calibrate_method, activation_type, weight_type, per_channel)
    choice = Choice(
        op_types=op_types_to_quantize or (),
        names=nodes_to_quantize or (),
        excluded=nodes_to_exclude or (),
        only_constant_weights=request.only_constant_weights,
    )
    cache = Path(calibration_cache_path) if calibration_cache_path is not None else None
    product = _quantized(model_input, calibration_data_reader, _Job(recipe, choice, request, cache))
    save(product, model_output, external=use_external_data_format)


@dataclass(frozen=True)
class _Job:
    """What is asked for, checked; ``cache`` is a file of ranges, read where it exists, else written."""

    recipe: Recipe
    choice: Choice
    request: Request
    cache: Path | None

    @property
    def has_ranges(self) -> bool:
        return self.cache is not None and self.cache.exists()


def _quantized(model: str | Path | onnx.ModelProto, reader: CalibrationDataReader | None, job: _Job) -> QdqModel:
    if reader is None and not job.has_ranges:
        raise CalibrationError("calibration_data_reader", "is missing", "give a reader, or a cache that exists")
    feeds = Feeds(reader) if reader is not None else None
    source_types = _op_types(model)
    job.choice.check(source_types)
    imported = import_model(model, _shapes(model, feeds))
    kept = tuple(job.choice.kept_float(imported, source_types))
    overrides = job.request.overrides(job.recipe.activations, imported.model.graph.initializers)
    recipe = replace(job.recipe, keep_float=kept, overrides=overrides)
    if job.cache is not None:  # which holds the float model's own ranges
        recipe = replace(recipe, smooth=False, awq=False)
    if feeds is None:
        recipe = replace(recipe, bias_correct=False, gptq=False)
    known = None
    if job.cache is not None and job.has_ranges:
        known = SavedRanges.read(job.cache).of(job.cache, imported.digest, recipe)
    found: list[Mapping[str, Range]] = []

    def adjust(ranges: Mapping[str, Range]) -> Mapping[str, Range]:
        found.append(ranges)
        return job.request.ranges(ranges)

    product = quantize(imported, feeds, recipe, ranges=known, adjust=adjust)
    if job.cache is not None and known is None and found:
        SavedRanges(imported.digest, recipe.method, recipe.knobs(), Ranges(*found)).write(job.cache)
    return product


def _op_types(model: str | Path | onnx.ModelProto) -> dict[str, str]:
    """The op types of the source's nodes by name; nameless ones get the names that messages use."""
    read, _ = read_model(model)
    name_nodes(read)
    return {str(node.name): node.op_type for node in read.graph}


def _shapes(model: str | Path | onnx.ModelProto, feeds: Feeds | None) -> dict[str, tuple[int, ...]]:
    """The shapes of the first sample, of the model's inputs only: the others are told of as it runs."""
    read, _ = read_model(model)
    names = {str(value.name) for value in read.graph.inputs}
    shapes = feeds.shapes if feeds is not None else {}
    return {name: shape for name, shape in shapes.items() if name in names}


def _refuse(quant_format: object, reduce_range: bool, providers: Sequence[str] | None) -> None:
    """Raises UsageError for arguments that ask for something else than QDQ with whole ranges on the CPU."""
    if not is_named(quant_format, QuantFormat.QDQ):
        raise UsageError("quant_format", f"is {quant_format}; expected QDQ", "leave it out: runtimes fuse Q/DQ")
    if reduce_range:
        instead = "leave it out: it serves CPUs without VNNI only"
        raise UsageError("reduce_range", "is True, which is not supported; weights keep their bits", instead)
    if providers is not None and list(providers) != ["CPUExecutionProvider"]:
        found = f"is {list(providers)}; expected CPUExecutionProvider alone"
        raise UsageError("calibration_providers", found, "leave it out")


def _recipe(request: Request, method: object, activations: object, weights: object, per_channel: bool) -> Recipe:
    name = getattr(method, "name", str(method))
    if name not in METHODS:
        expected = f"expected one of {', '.join(METHODS)}"
        raise UsageError("calibrate_method", f"is {name}, which is not supported; {expected}", "choose one of them")
    return Recipe(
        method=request.method if request.method and name == "MinMax" else METHODS[name],
        percentile=PERCENTILE if request.percentile is None else request.percentile,
        activations=our_type("activation_type", activations, ACTIVATION_TYPES),
        weights=our_type("weight_type", weights, WEIGHT_TYPES),
        per_channel=bool(per_channel),
        weight_block=request.block,
        smooth=request.smooth,
        mixed=False,  # the type asked for, everywhere
    )


def _is_product_of_two(node: ir.Node) -> bool:
    return node.op_type == "MatMul" and constant(input_at(node, 1)) is None
