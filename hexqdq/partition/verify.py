"""What must hold of a partitioned model."""

from __future__ import annotations

from collections.abc import Iterator

from hexqdq.partition.product import HostPart, Part, PartitionedModel


def problems(model: PartitionedModel) -> Iterator[str]:
    """Values read before they are written, segments read in the wrong order, outputs that nothing writes."""
    known = {tensor.name for tensor in model.inputs}
    for part in model.parts:
        for name in reads(part):
            if name not in known:
                yield f"part {part.name} reads {name!r} before anything writes it"
        known |= set(writes(part))
        if not isinstance(part, HostPart):
            yield from _unit_order(part.name, {t.name for t in part.graph.inputs}, part)
    for tensor in model.outputs:
        if tensor.name not in known:
            yield f"nothing writes output {tensor.name!r}"


def _unit_order(name: str, known: set[str], part: Part) -> Iterator[str]:
    assert not isinstance(part, HostPart)
    for unit in part.graph.units:
        for tensor in unit.variable_inputs():
            if tensor.name not in known:
                yield f"unit {unit.name!r} of {name} reads {tensor.name!r} before anything writes it"
        known |= {tensor.name for tensor in unit.outputs}
    for tensor in part.graph.outputs:
        if tensor.name not in known:
            yield f"nothing in {name} writes {tensor.name!r}"


def reads(part: Part) -> tuple[str, ...]:
    """The model's values that a part reads."""
    return part.inputs if isinstance(part, HostPart) else tuple(edge.value for edge in part.inputs)


def writes(part: Part) -> tuple[str, ...]:
    """The model's values that a part writes."""
    return part.outputs if isinstance(part, HostPart) else tuple(edge.value for edge in part.outputs)
