"""STAGES as data: what each makes from the product before it; run them from one to another, dump and time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hexqdq.errors import ModelError, UsageError
from hexqdq.files import dumping, replace_file
from hexqdq.report import Measure, Progress, to_json_text
from hexqdq.target import DEFAULT_TARGET, Target, find_target

if TYPE_CHECKING:
    from hexqdq.compile.product import CompiledModel
    from hexqdq.import_.product import ImportedModel
    from hexqdq.partition.product import PartitionedModel
    from hexqdq.quantize.calibration.ranges import Ranges
    from hexqdq.quantize.product import QdqModel
    from hexqdq.quantize.recipe import Recipe

Feed = Mapping[str, NDArray[Any]]
Calibration = Callable[["ImportedModel"], Iterable[Feed]]
"""Makes the feeds once the model's inputs are known."""
KnownRanges = Callable[["ImportedModel"], "Ranges | None"]
"""Gives the model's ranges where they need not be calibrated."""


@dataclass(frozen=True)
class Options:
    """Everything that stages are told besides the product before them.

    A float model needs ``calibration``, ``ranges`` that are known, or ``allow_float`` to stay float on
    the CPU; ``complete`` quantizes what is float in a model with Q/DQ, too; ``dump`` is a folder that gets
    every stage's product.
    """

    input_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    calibration: Calibration | None = None
    recipe: Recipe | None = None
    ranges: KnownRanges | None = None
    target: Target = field(default_factory=lambda: find_target(DEFAULT_TARGET))
    allow_float: bool = False
    complete: bool = False
    dump: Path | None = None
    progress: Progress | None = None


@dataclass(frozen=True)
class Stage:
    """One arrow of the chain: ``run`` makes its product, ``dump`` writes that under a numbered stem."""

    name: str
    run: Callable[[Any, Options], Any]
    dump: Callable[[Any, Path], None]


@dataclass(frozen=True)
class Outcome:
    """The product of every stage that ran, by the stage's name, and the time each took."""

    products: Mapping[str, Any]
    measures: tuple[Measure, ...]


@dataclass(frozen=True)
class InCompile:
    """The segments of a model between two stages of compile."""

    partitioned: PartitionedModel
    segments: tuple[Any, ...]

    def advanced(self, what: str, stage: Callable[[Any], Any], progress: Progress | None) -> InCompile:
        """Every segment one stage further; several are counted."""
        done = []
        for index, segment in enumerate(self.segments):
            done.append(stage(segment))
            if progress is not None and len(self.segments) > 1:
                progress(f"{what} of segments", index + 1, len(self.segments))
        return InCompile(self.partitioned, tuple(done))


def _import(source: Any, options: Options) -> ImportedModel:
    from hexqdq.import_.pipeline import import_model

    return import_model(source, options.input_shapes)


def _quantize(imported: ImportedModel, options: Options) -> QdqModel:
    from hexqdq.quantize.pipeline import already_quantized, is_quantized, quantize
    from hexqdq.quantize.recipe import Recipe

    if (is_quantized(imported.model) and not options.complete) or (options.allow_float and options.calibration is None):
        return already_quantized(imported)
    ranges = options.ranges(imported) if options.ranges is not None else None
    if options.calibration is None and ranges is None:
        raise ModelError(
            imported.source,
            "is a float model: it has no QuantizeLinear or DequantizeLinear",
            f"quantize it first: hexqdq quantize {imported.source} --calib DATA",
        )
    feeds = options.calibration(imported) if options.calibration is not None else None
    return quantize(imported, feeds, options.recipe or Recipe(), options.progress, ranges)


def _partition(qdq: QdqModel, options: Options) -> PartitionedModel:
    from hexqdq.partition.pipeline import partition

    return partition(qdq, options.target)


def _tosa(partitioned: PartitionedModel, options: Options) -> InCompile:
    from hexqdq.compile.pipeline import parts_at_tosa

    return InCompile(partitioned, parts_at_tosa(partitioned, options.target, options.dump))


def _linalg(work: InCompile, options: Options) -> InCompile:
    from hexqdq.compile.pipeline import to_linalg

    return work.advanced("linalg", to_linalg, options.progress)


def _schedule(work: InCompile, options: Options) -> InCompile:
    from hexqdq.compile.pipeline import to_schedule

    return work.advanced("scheduled", to_schedule, options.progress)


def _objects(work: InCompile, options: Options) -> CompiledModel:
    from hexqdq.compile.pipeline import joined, to_objects

    return joined(work.partitioned, options.target, work.advanced("objects", to_objects, options.progress).segments)


def _context(compiled: CompiledModel, options: Options) -> bytes:
    from hexqdq.context.file import to_bytes

    return to_bytes(compiled)


def _dump_model(product: ImportedModel | QdqModel, stem: Path) -> None:
    from hexqdq.passes import dump_model

    dump_model(product.model, stem.with_suffix(".onnx"))


def _dump_partition(product: PartitionedModel, stem: Path) -> None:
    from hexqdq.partition.product import HostPart

    for index, part in enumerate(product.parts):
        if isinstance(part, HostPart):
            replace_file(stem.with_name(f"{stem.name}_{index}_{part.name}.onnx"), [part.model])
        else:
            path = stem.with_name(f"{stem.name}_{index}_{part.name}.json")
            replace_file(path, [to_json_text(part.graph).encode()])


def _dumped_inside(product: object, stem: Path) -> None:
    """Compile writes a folder per segment itself, so that its texts are there when a stage fails."""


def _dump_context(product: bytes, stem: Path) -> None:
    replace_file(stem.with_suffix(".ctx"), [product])


STAGES: tuple[Stage, ...] = (
    Stage("import", _import, _dump_model),
    Stage("quantize", _quantize, _dump_model),
    Stage("partition", _partition, _dump_partition),
    Stage("tosa", _tosa, _dumped_inside),
    Stage("linalg", _linalg, _dumped_inside),
    Stage("scheduled", _schedule, _dumped_inside),
    Stage("objects", _objects, _dumped_inside),
    Stage("context", _context, _dump_context),
)


def run_stages(product: Any, options: Options, first: str = "import", last: str = "context") -> Outcome:
    """Runs the stages from ``first`` to ``last``; ``product`` is what the first one takes.

    Raises UsageError for an unknown stage or a last one before the first, and what the stages raise.
    """
    products: dict[str, Any] = {}
    measures = []
    for index in range(_index(first), _index(last, at_least=_index(first)) + 1):
        stage = STAGES[index]
        if options.progress is not None:
            options.progress(stage.name, 0, 1)
        started = time.perf_counter()
        product = products[stage.name] = stage.run(product, options)
        measures.append(Measure(f"{stage.name} time", time.perf_counter() - started, "s"))
        if options.dump is not None:
            with dumping(options.dump):
                options.dump.mkdir(parents=True, exist_ok=True)
                stage.dump(product, options.dump / f"{index:02d}_{stage.name}")
        if options.progress is not None:
            options.progress(stage.name, 1, 1)
    return Outcome(products, tuple(measures))


def made_up_feed(imported: ImportedModel) -> list[Feed]:
    """One feed of seeded noise, integers all 1: enough to see where nodes would run, not to calibrate.

    A mask of ones hides nothing, and 1 is an index into almost anything.
    """
    generator = np.random.default_rng(0)
    feed = {}
    for value in imported.model.graph.inputs:
        assert value.shape is not None and value.dtype is not None
        noise, dtype = generator.uniform(0, 1, value.shape.numpy()), value.dtype.numpy()
        feed[str(value.name)] = (noise if dtype.kind == "f" else np.ceil(noise)).astype(dtype)
    return [feed]


def _index(name: str, at_least: int = 0) -> int:
    names = [stage.name for stage in STAGES]
    if name not in names[at_least:]:
        problem = f"unknown or out of order; expected one of {', '.join(names[at_least:])}"
        raise UsageError(f"stage {name!r}", problem, "name one of them")
    return names.index(name)
