"""Quantizing and compiling models in one call: ``hexqdq.quantize_model`` and ``hexqdq.compile_model``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from hexqdq import driver
from hexqdq.app import tosa_file
from hexqdq.app.calibration.pictures import PictureOptions
from hexqdq.app.calibration.signature import Signature
from hexqdq.app.calibration.source import open_calibration
from hexqdq.compile.product import CompiledModel
from hexqdq.errors import ContextError, HexqdqError, UnsupportedError, UsageError
from hexqdq.files import require_folder, require_place
from hexqdq.import_.product import ImportedModel
from hexqdq.quantize.calibration.ranges import Ranges, SavedRanges
from hexqdq.quantize.findings import Finding, findings
from hexqdq.quantize.product import QdqModel
from hexqdq.quantize.recipe import Recipe
from hexqdq.quantize.scaled import marked
from hexqdq.report import Decision, Measure, Progress, Table, measure_table, reason_table
from hexqdq.target import DEFAULT_TARGET, find_target

if TYPE_CHECKING:
    import onnx

Model: TypeAlias = "str | Path | bytes | onnx.ModelProto"
Shapes = Mapping[str, tuple[int, ...]]

SHOWN = 12
"""How many findings are printed."""


@dataclass(frozen=True, eq=False)
class Quantized:
    """A QDQ model that was written, and what came of quantizing it."""

    path: Path
    product: QdqModel
    measures: tuple[Measure, ...]
    findings: tuple[Finding, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "output": str(self.path),
            "ranges": {name: list(bounds) for name, bounds in self.product.ranges.items()},
            "left_float": self.product.decisions,
            "mixed_precision": self.product.mixed,
            "findings": self.findings,
            "measures": self.measures,
        }

    def tables(self) -> tuple[Table, ...]:
        """Counts and times, which activations have 16 bits and why, what was found, why nodes were left float."""
        reasons = reason_table(self.product.decisions, "Why nodes stay float")
        mixed = self.product.mixed.tables() if self.product.mixed is not None else ()
        return (self._counts(), *mixed, *(table for table in (self._found(), reasons) if table.rows))

    def _found(self) -> Table:
        hidden = len(self.findings) - SHOWN
        more = f" (and {hidden} more, see --json)" if hidden > 0 else ""
        rows = tuple((entry.kind, entry.where, entry.what) for entry in self.findings[:SHOWN])
        return Table(f"What makes it hard, and what was done{more}", ("kind", "where", "what"), rows)

    def _counts(self) -> Table:
        counts = (
            Measure("tensors calibrated", len(self.product.ranges), ""),
            Measure("nodes left float", len(self.product.decisions), ""),
        )
        title = "Quantized" if self.product.ranges else "Already quantized: Q/DQ kept to the bit"
        return measure_table((*counts, *self.measures), title)


@dataclass(frozen=True, eq=False)
class Compiled:
    """A context that was written, where its nodes run, and what compiling took."""

    path: Path
    product: CompiledModel
    measures: tuple[Measure, ...]

    @property
    def decisions(self) -> tuple[Decision, ...]:
        return self.product.decisions


def quantize_model(
    model: Model,
    calibration: str | Path | Iterable[driver.Feed],
    recipe: Recipe | None = None,
    *,
    output: str | Path | None = None,
    input_shapes: Shapes | None = None,
    progress: Progress | None = None,
) -> Path | QdqModel:
    """Calibrates a float model and inserts Q/DQ; returns the written path, or the product without ``output``.

    ``calibration`` is a folder of .npz files, one .npz of stacked samples, or feeds by input name. A
    model that has Q/DQ already keeps them to the bit.
    """
    if output is not None:
        require_place(Path(output))
    outcome = _quantize(model, calibration, _Settings(recipe, input_shapes, progress=progress))
    product: QdqModel = outcome.products["quantize"]
    return product if output is None else _save(product, output)


def compile_model(
    model: Model | QdqModel,
    *,
    output: str | Path | None = None,
    target: str = DEFAULT_TARGET,
    input_shapes: Shapes | None = None,
    progress: Progress | None = None,
) -> Path | CompiledModel:
    """Compiles a QDQ model; returns the written context's path, or the product without ``output``.

    ``model`` may be what ``quantize_model`` returned. Raises ModelError for a model without Q/DQ.
    """
    if output is not None:
        require_place(Path(output), ContextError)
    options = driver.Options(input_shapes=input_shapes or {}, target=find_target(target), progress=progress)
    if isinstance(model, QdqModel):
        if input_shapes:
            found = f"given for {', '.join(input_shapes)}, and the model is quantized: its shapes are static"
            raise UsageError("input_shapes", found, "give them to quantize_model")
        outcome = driver.run_stages(model, options, first="partition", last="objects")
    else:
        outcome = driver.run_stages(model, options, last="objects")
    product: CompiledModel = outcome.products["objects"]
    return product if output is None else _write(product, output)


def quantize_to_file(
    model: Path,
    calibration: str | Path | None,
    output: Path,
    *,
    recipe: Recipe | None = None,
    ranges: Path | None = None,
    input_shapes: Shapes | None = None,
    pictures: PictureOptions | None = None,
    external_data: bool = False,
    dump: Path | None = None,
    progress: Progress | None = None,
) -> Quantized:
    """What ``hexqdq quantize`` does; the file ``ranges`` is read where it exists, else written."""
    if calibration is None and (ranges is None or not ranges.exists()):
        raise UsageError("--calib", "is missing", "give calibration data, or --ranges FILE of an earlier run")
    _require_places(model, output, dump)
    outcome = _quantize(model, calibration, _Settings(recipe, input_shapes, dump, progress, pictures, ranges))
    product: QdqModel = outcome.products["quantize"]
    if ranges is not None and not ranges.exists() and product.ranges:
        imported: ImportedModel = outcome.products["import"]
        used = recipe or Recipe()
        scaled = marked(product.model) - marked(imported.model)
        found = Ranges(product.ranges, product.wide_ranges).without(scaled)
        SavedRanges(imported.digest, used.method, used.knobs(), found).write(ranges)
    found_out = findings(outcome.products["import"], product)
    return Quantized(_save(product, output, external_data), product, outcome.measures, found_out)


def compile_to_file(
    model: Path,
    output: Path,
    *,
    target: str = DEFAULT_TARGET,
    input_shapes: Shapes | None = None,
    allow_cpu: bool = False,
    dump: Path | None = None,
    progress: Progress | None = None,
) -> Compiled:
    """What ``hexqdq compile`` does, for an ONNX model or the MLIR text of a TOSA function.

    ``allow_cpu`` accepts a model of which nothing runs on the NPU.
    """
    options = driver.Options(
        input_shapes=input_shapes or {}, target=find_target(target), dump=dump, progress=progress, allow_float=allow_cpu
    )
    _require_places(model, output, dump, ContextError)
    if model.suffix == tosa_file.SUFFIX:
        outcome = tosa_file.compile_text(model, options)
    else:
        outcome = driver.run_stages(model, options, last="objects")
    product: CompiledModel = outcome.products["objects"]
    if not product.segments and not allow_cpu:
        raise UnsupportedError(
            str(model),
            "no node of it runs on the NPU",
            f"see why with hexqdq explain {model}, or accept it with --allow-cpu",
        )
    path = _write(product, output)
    return Compiled(path, product, (*outcome.measures, *size_measures(product, path)))


def _require_places(model: Path, output: Path, dump: Path | None, refusal: type[HexqdqError] = UsageError) -> None:
    """Asks before the work whether its results can be written; a model that is missing is told first."""
    if model.is_file():
        require_place(output, refusal)
        require_folder(dump)


def size_measures(product: CompiledModel, path: Path) -> tuple[Measure, ...]:
    """How large a context and its pieces are."""
    keys = sorted({key for segment in product.segments for key in segment.objects})
    objects = (
        Measure(f"code {key}", sum(len(segment.objects[key]) for segment in product.segments), "bytes") for key in keys
    )
    return (
        Measure("context", path.stat().st_size, "bytes"),
        Measure("segments", len(product.segments), ""),
        Measure("steps", sum(len(segment.steps.steps) for segment in product.segments), ""),
        Measure("constants", sum(len(segment.constants) for segment in product.segments), "bytes"),
        Measure("arena", sum(segment.arena_bytes for segment in product.segments), "bytes"),
        *objects,
    )


def chosen_recipe(path: Path | None, preset: str | None, choices: Mapping[str, Any]) -> Recipe:
    """A preset, the default one if not named, under the options of a file and the choices that are not None.

    Choices that no recipe has are of something else.
    """
    base = Recipe.preset(preset) if preset is not None else Recipe()
    recipe = read_recipe(path, base) if path is not None else base
    own = {field.name: choices.get(field.name) for field in fields(Recipe)}
    return Recipe.from_json({name: choice for name, choice in own.items() if choice is not None}, recipe)


def read_recipe(path: Path, base: Recipe | None = None) -> Recipe:
    """A recipe from a JSON file, what it leaves out from ``base``; raises UsageError where it is not one."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"recipe {path}", f"cannot be read: {error}", "write Recipe(...).to_json() as JSON") from error
    if not isinstance(data, dict):
        raise UsageError(f"recipe {path}", "is no JSON object", "write Recipe(...).to_json() as JSON")
    return Recipe.from_json(data, base)


@dataclass(frozen=True)
class _Settings:
    recipe: Recipe | None = None
    input_shapes: Shapes | None = None
    dump: Path | None = None
    progress: Progress | None = None
    pictures: PictureOptions | None = None
    ranges: Path | None = None


def _quantize(
    model: Model, calibration: str | Path | Iterable[driver.Feed] | None, settings: _Settings
) -> driver.Outcome:
    def feeds(imported: ImportedModel) -> Iterable[driver.Feed]:
        if isinstance(calibration, str | Path):
            return open_calibration(calibration, signature(imported), settings.pictures)
        return calibration or ()

    def known(imported: ImportedModel) -> Ranges | None:
        path = settings.ranges
        if path is None or not path.exists():
            return None
        return SavedRanges.read(path).of(path, imported.digest, settings.recipe or Recipe())

    options = driver.Options(
        input_shapes=settings.input_shapes or {},
        calibration=feeds if calibration is not None else None,
        ranges=known,
        recipe=settings.recipe,
        complete=True,
        dump=settings.dump,
        progress=settings.progress,
    )
    return driver.run_stages(model, options, last="quantize")


def signature(imported: ImportedModel) -> dict[str, Signature]:
    """The inputs of an imported model by name."""
    inputs = {}
    for value in imported.model.graph.inputs:
        assert value.shape is not None and value.dtype is not None
        inputs[str(value.name)] = Signature(tuple(value.shape.numpy()), value.dtype.numpy())
    return inputs


def _save(product: QdqModel, path: str | Path, external_data: bool = False) -> Path:
    from hexqdq.quantize.writing.save import save

    return save(product, path, external=external_data)


def _write(product: CompiledModel, path: str | Path) -> Path:
    from hexqdq.context.file import write

    return write(product, path)
