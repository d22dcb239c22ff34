"""Cuts the model: segments and CPU parts in the order in which they run."""

from __future__ import annotations

from collections.abc import Collection

import onnx_ir as ir

from hexqdq.partition.cut import Cut, npu_part
from hexqdq.partition.host import HostDraft, draft, finish, wanted_values
from hexqdq.partition.product import HostPart, NpuPart, Part


def parts(cut: Cut) -> tuple[Part, ...]:
    """Every part of the model; CPU parts hold copies of the Q and DQ that they need."""
    order = [batch.segment for batch in cut.batches if batch.segment is not None]
    segments = {number: npu_part(cut, number, f"segment{index}") for index, number in enumerate(order)}
    delivered = {edge.value for part in segments.values() for edge in part.outputs}
    placed: list[NpuPart | HostDraft] = []
    for batch in cut.batches:
        if batch.segment is not None:
            placed.append(segments[batch.segment])
        else:
            nodes = [item for i in batch.items if isinstance(item := cut.items[i], ir.Node)]
            placed.append(draft(cut, nodes, delivered))
    _append_rest(cut, placed, delivered)
    return _finished(cut, placed)


def _append_rest(cut: Cut, placed: list[NpuPart | HostDraft], delivered: Collection[str]) -> None:
    """Border nodes whose result is an output of the model and that no segment absorbs run last, on the CPU."""
    made = {node for part in placed if isinstance(part, HostDraft) for node in part.nodes}
    outputs = [value.producer() for value in cut.view.model.graph.outputs if value.name not in delivered]
    rest = [node for node in outputs if node is not None and cut.is_border(node) and node not in made]
    if not rest:
        return
    last = placed[-1] if placed else None
    if isinstance(last, HostDraft):
        placed[-1] = draft(cut, [*last.nodes, *rest], delivered)
    else:
        placed.append(draft(cut, rest, delivered))


def _finished(cut: Cut, placed: list[NpuPart | HostDraft]) -> tuple[Part, ...]:
    drafts = [part for part in placed if isinstance(part, HostDraft)]
    npu_reads = [edge.value for part in placed if isinstance(part, NpuPart) for edge in part.inputs]
    wanted = wanted_values(drafts, npu_reads, cut.view.outputs)
    numbers = iter(range(len(drafts)))
    written: set[str] = set()
    result: list[Part] = []
    for part in placed:
        if isinstance(part, NpuPart):
            result.append(part)
            continue
        host = finish(cut.view, part, f"host{next(numbers)}", wanted - written)
        written.update(host.outputs)
        result.append(host)
    return tuple(part for part in result if not isinstance(part, HostPart) or part.outputs)
