"""The compile room: a partitioned model to step lists, constants and shared objects, stage by stage."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from hexqdq.compile.dump import Dump
from hexqdq.compile.given.beside import packed
from hexqdq.compile.kernels.style import style_of
from hexqdq.compile.linalg.nest import Function
from hexqdq.compile.linalg.pipeline import lower_to_nodes
from hexqdq.compile.linalg.show import text_of
from hexqdq.compile.objects.link import shared_object
from hexqdq.compile.objects.llvm import llvm_ir, object_code
from hexqdq.compile.product import CompiledModel, CompiledSegment, TosaSegment
from hexqdq.compile.schedule.entry import module_text
from hexqdq.compile.schedule.schedule import Scheduled, schedule
from hexqdq.compile.verify import verify_function, verify_object, verify_schedule, verify_tosa
from hexqdq.ops.unit import UnitGraph
from hexqdq.partition.product import NpuPart, PartitionedModel
from hexqdq.target import Target, host_targets


@dataclass(frozen=True, eq=False)
class AtTosa:
    """A segment as TOSA; ``targets`` get one object each and share the steps, ``texts`` are its dump."""

    tosa: TosaSegment
    graph: UnitGraph | None
    targets: tuple[Target, ...]
    texts: Dump


@dataclass(frozen=True, eq=False)
class AtLinalg:
    """A segment as loop nests, fused and simplified."""

    segment: AtTosa
    function: Function


@dataclass(frozen=True, eq=False)
class AtSchedule:
    """A segment as a step list with fixed buffers, and the kernels' texts for each target."""

    segment: AtTosa
    scheduled: Scheduled


def at_tosa(
    tosa: TosaSegment, graph: UnitGraph | None, target: Target, hosts: tuple[Target, ...], dump: Path | None = None
) -> AtTosa:
    """The first stage; ``dump`` is the segment's own folder."""
    segment = AtTosa(tosa, graph, tuple(dict.fromkeys((target, *hosts))), Dump(tosa.name, dump))
    with segment.texts.kept_on_failure():
        segment.texts.write("tosa.mlir", tosa.text)
        if dump is not None:
            segment.texts.write_beside("tosa.npz", packed(tosa))
        verify_tosa(tosa)
    return segment


def parts_at_tosa(partitioned: PartitionedModel, target: Target, dump: Path | None = None) -> tuple[AtTosa, ...]:
    """Every NPU part at the first stage, for ``target`` and this machine's host rows."""
    from hexqdq.compile.tosa import lower_segment

    parts = [part for part in partitioned.parts if isinstance(part, NpuPart)]
    folders = [dump / part.name if dump else None for part in parts]
    return tuple(
        at_tosa(lower_segment(part.graph), part.graph, target, host_targets(), folder)
        for part, folder in zip(parts, folders, strict=True)
    )


def to_linalg(segment: AtTosa) -> AtLinalg:
    """TOSA to loop nests."""
    with segment.texts.kept_on_failure():
        function, text = lower_to_nodes(segment.tosa)
        segment.texts.write("linalg.mlir", text)
        segment.texts.write("nodes.txt", text_of(function))
        verify_function(function)
    return AtLinalg(segment, function)


def to_schedule(lowered: AtLinalg) -> AtSchedule:
    """Loop nests to steps, kernels and fixed buffers."""
    segment = lowered.segment
    with segment.texts.kept_on_failure():
        scheduled = schedule(lowered.function, segment.tosa, [style_of(row) for row in segment.targets])
        verify_schedule(scheduled.steps, len(scheduled.constants))
        segment.texts.write("steps.json", scheduled.steps.to_json())
    return AtSchedule(segment, scheduled)


def to_objects(ordered: AtSchedule) -> CompiledSegment:
    """Kernels and entry function to one shared object per target, side by side."""
    segment, scheduled = ordered.segment, ordered.scheduled
    tosa, targets = segment.tosa, segment.targets
    with segment.texts.kept_on_failure(), ThreadPoolExecutor(len(targets)) as pool:
        jobs = [pool.submit(built, tosa.name, scheduled, i, row, segment.texts) for i, row in enumerate(targets)]
        objects = {row.object_key: job.result() for row, job in zip(targets, jobs, strict=True)}
    return CompiledSegment(tosa.name, segment.graph, tosa, scheduled.steps, objects, scheduled.constants)


def compile_segment(
    tosa: TosaSegment, graph: UnitGraph | None, target: Target, hosts: tuple[Target, ...], dump: Path | None = None
) -> CompiledSegment:
    """One segment through every stage: for ``target`` and, with the same steps, for every host.

    Raises CompileError where the tool-chain fails; the message names the folder with the texts up
    to that point.
    """
    return to_objects(to_schedule(to_linalg(at_tosa(tosa, graph, target, hosts, dump))))


def joined(partitioned: PartitionedModel, target: Target, segments: tuple[CompiledSegment, ...]) -> CompiledModel:
    """The whole model with its compiled segments."""
    return CompiledModel(
        target.name,
        partitioned.digest,
        partitioned.inputs,
        partitioned.outputs,
        partitioned.parts,
        segments,
        partitioned.decisions,
        partitioned.origin,
    )


def built(name: str, scheduled: Scheduled, index: int, target: Target, texts: Dump) -> bytes:
    """The shared object of one target."""
    key = target.object_key
    text = module_text(scheduled.steps, scheduled.kernels[index])
    texts.write(f"{key}.kernels.mlir", text)
    ir = llvm_ir(name, text)
    texts.write(f"{key}.ll", ir)
    made = object_code(name, ir, target, want_assembly=texts.folder is not None)
    texts.write(f"{key}.s", made.assembly)
    linked = shared_object(made.code, target)
    verify_object(name, linked, target)
    texts.write(f"{key}.so", linked)
    return linked
