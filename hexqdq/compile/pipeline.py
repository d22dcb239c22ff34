"""The compile room: a partitioned model to step lists, constants and shared objects."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hexqdq.compile.dump import Dump
from hexqdq.compile.kernels.style import style_of
from hexqdq.compile.linalg.pipeline import lower_to_nodes
from hexqdq.compile.objects.link import shared_object
from hexqdq.compile.objects.llvm import llvm_ir, object_code
from hexqdq.compile.product import CompiledModel, CompiledSegment, TosaSegment
from hexqdq.compile.schedule.entry import module_text
from hexqdq.compile.schedule.schedule import Scheduled, schedule
from hexqdq.compile.verify import verify_function, verify_object, verify_schedule, verify_tosa
from hexqdq.ops.unit import UnitGraph
from hexqdq.partition.product import NpuPart, PartitionedModel
from hexqdq.target import Target, find_target, host_targets

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how many are done, and how many there are."""


def compile_parts(
    partitioned: PartitionedModel, target: Target | str, dump: Path | None = None, progress: Progress | None = None
) -> CompiledModel:
    """Every NPU part compiled for ``target`` and for this machine's host rows."""
    from hexqdq.compile.tosa import lower_segment

    row = find_target(target) if isinstance(target, str) else target
    parts = [part for part in partitioned.parts if isinstance(part, NpuPart)]
    segments = []
    for index, part in enumerate(parts):
        if progress:
            progress(f"compile {part.name}", index, len(parts))
        folder = dump / part.name if dump else None
        tosa = lower_segment(part.graph)
        segments.append(compile_segment(tosa, part.graph, row, host_targets(), folder))
    if progress:
        progress("compile", len(parts), len(parts))
    return CompiledModel(
        row.name,
        partitioned.digest,
        partitioned.inputs,
        partitioned.outputs,
        partitioned.parts,
        tuple(segments),
        partitioned.decisions,
        partitioned.origin,
    )


def compile_segment(
    tosa: TosaSegment, graph: UnitGraph | None, target: Target, hosts: tuple[Target, ...], dump: Path | None = None
) -> CompiledSegment:
    """One segment from TOSA to objects: for ``target`` and, with the same steps, for every host.

    Raises CompileError where the tool-chain fails; the message names the folder with the texts up
    to that point.
    """
    texts = Dump(tosa.name, dump)
    with texts.kept_on_failure():
        texts.write("tosa.mlir", tosa.text)
        verify_tosa(tosa)
        function, linalg = lower_to_nodes(tosa)
        texts.write("linalg.mlir", linalg)
        verify_function(function)
        targets = tuple(dict.fromkeys((target, *hosts)))
        scheduled = schedule(function, tosa, [style_of(row) for row in targets])
        verify_schedule(scheduled.steps, len(scheduled.constants))
        texts.write("steps.json", scheduled.steps.to_json())
        with ThreadPoolExecutor(len(targets)) as pool:
            jobs = [pool.submit(built, tosa.name, scheduled, i, row, texts) for i, row in enumerate(targets)]
            objects = {row.object_key: job.result() for row, job in zip(targets, jobs, strict=True)}
    return CompiledSegment(tosa.name, graph, tosa, scheduled.steps, objects, scheduled.constants)


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
