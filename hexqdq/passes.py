"""The contract of a pass over an ONNX graph, and the runner that verifies, dumps and times each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx_ir as ir

from hexqdq.errors import CompileError

Rewrite = Callable[[ir.Model], int]
Verify = Callable[[ir.Model], Iterable[str]]

INLINE_BYTES = (1 << 31) - (1 << 24)
"""Weights that an ONNX file may hold itself: protobuf ends at 2 GB."""


@dataclass(frozen=True)
class Pass:
    """One rewrite of the model in place.

    ``run`` returns how many changes it made: 0 exactly when the model is as it was. A second run
    right after the first returns 0. ``reason`` says why the pass stands where it stands.
    """

    name: str
    reason: str
    run: Rewrite


@dataclass(frozen=True)
class PassRecord:
    """What one pass did: its changes and its time in seconds."""

    name: str
    changes: int
    seconds: float


def run_passes(
    model: ir.Model,
    passes: Iterable[Pass],
    *,
    verify: Verify | None = None,
    dump: Path | None = None,
) -> tuple[PassRecord, ...]:
    """Runs the passes in order on ``model``, in place.

    After every pass the graph must be well formed and ``verify`` must yield no problem; otherwise
    CompileError names the pass. ``dump`` is a folder that gets the model after every pass as
    ``00_name.onnx``, ``01_name.onnx`` and so on.
    """
    records = []
    for index, one in enumerate(passes):
        started = time.perf_counter()
        changes = int(one.run(model))
        records.append(PassRecord(one.name, changes, time.perf_counter() - started))
        if dump is not None:
            dump_model(model, dump / f"{index:02d}_{one.name}.onnx")
        _check(model, one.name, verify)
    return tuple(records)


def dump_model(model: ir.Model, path: Path) -> None:
    """Writes the model as an ONNX file, weights over 2 GB beside it; missing folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ir.save(model, path, external_data=f"{path.name}.data" if weight_bytes(model) > INLINE_BYTES else None)


def weight_bytes(model: ir.Model) -> int:
    """What the initializers of the main graph take."""
    return sum(v.const_value.nbytes for v in model.graph.initializers.values() if v.const_value is not None)


def well_formed(model: ir.Model) -> Iterator[str]:
    """What is wrong with the main graph: unnamed or doubled names, uses before the value exists."""
    known = {value.name for value in (*model.graph.inputs, *model.graph.initializers.values())}
    node_names: set[str] = set()
    for node in model.graph:
        if not node.name or node.name in node_names:
            yield f"node {node.name!r} ({node.op_type}) has no name of its own"
        node_names.add(node.name or "")
        for value in node.inputs:
            if value is not None and value.name not in known:
                yield f"node {node.name!r} reads {value.name!r} before anything makes it"
        for output in node.outputs:
            if output.name and output.name in known:
                yield f"value {output.name!r} is made twice"
            known.add(output.name)
    for output in model.graph.outputs:
        if output.name not in known:
            yield f"graph output {output.name!r} is made by nothing"


def _check(model: ir.Model, pass_name: str, verify: Verify | None) -> None:
    problems = list(well_formed(model))
    if not problems and verify is not None:
        problems = list(verify(model))
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise CompileError(
            f"pass {pass_name}",
            f"left a model that breaks its contract: {problems[0]}{more}",
            "repeat with --dump DIR and report the model before this pass",
        )
