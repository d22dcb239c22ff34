"""What is in a context file: what ``hexqdq inspect`` prints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hexqdq.compile.product import Area, Edge, Operand, StepList
from hexqdq.context.container import FORMAT_VERSION
from hexqdq.context.file import read
from hexqdq.context.product import Context, HostCall, StoredSegment
from hexqdq.ops.unit import Tensor
from hexqdq.qtypes import QuantParams
from hexqdq.report import Cell, Measure, Table, measure_table, share

SHORT_DIGEST = 12
VALUE_COLUMNS = ("is", "name", "type", "shape", "quantization")


@dataclass(frozen=True)
class Lifetime:
    """A run of arena bytes from the step that writes it to the last one that reads it."""

    offset: int
    nbytes: int
    first_step: int
    last_step: int

    def holds(self, operand: Operand) -> bool:
        return self.offset <= operand.offset and operand.end <= self.offset + self.nbytes

    def until(self, step: int) -> Lifetime:
        return Lifetime(self.offset, self.nbytes, self.first_step, step)

    def to_json(self) -> dict[str, int]:
        return {
            "offset": self.offset,
            "nbytes": self.nbytes,
            "first_step": self.first_step,
            "last_step": self.last_step,
        }


def memory_plan(steps: StepList) -> tuple[Lifetime, ...]:
    """What lies in the arena, and from which step to which, in the order of writing."""
    plan: list[Lifetime] = []
    for index, step in enumerate(steps.steps):
        for operand in step.operands:
            if operand.area is not Area.ARENA:
                continue
            if operand.writes:
                plan.append(Lifetime(operand.offset, operand.nbytes, index, index))
                continue
            written = max((at for at, life in enumerate(plan) if life.holds(operand)), default=None)
            if written is not None:
                plan[written] = plan[written].until(index)
    return tuple(plan)


@dataclass(frozen=True, eq=False)
class Inspection:
    """A whole context, every section checked against its digest."""

    context: Context

    def tables(self) -> tuple[Table, ...]:
        context = self.context
        per_segment = (table for segment in context.segments for table in _segment_tables(segment))
        return (self._summary(), self._values(), self._parts(), *per_segment, self._sections())

    def to_text(self) -> str:
        """Where the nodes run; `hexqdq explain` has each."""
        return str(share(self.context.decisions)) if self.context.decisions else ""

    def to_json(self) -> dict[str, Any]:
        context = self.context
        return {
            "file": context.source,
            "nbytes": len(context.container.data),
            "format": FORMAT_VERSION,
            "target": context.target,
            "digest": context.digest,
            "versions": dict(context.versions),
            "inputs": [tensor.to_json() for tensor in context.inputs],
            "outputs": [tensor.to_json() for tensor in context.outputs],
            "parts": [_part_json(call) for call in context.calls],
            "segments": [_segment_json(segment) for segment in context.segments],
            "sections": [
                {"name": section.name, "offset": section.offset, "nbytes": section.nbytes, "sha256": section.sha256}
                for section in context.container.sections.values()
            ],
        }

    def _summary(self) -> Table:
        context = self.context
        facts: list[tuple[Cell, ...]] = [
            ("file", context.source),
            ("bytes", f"{len(context.container.data):,}"),
            ("format", str(FORMAT_VERSION)),
            ("target", context.target),
            ("model digest", context.digest),
            *((f"version of {name}", version) for name, version in sorted(context.versions.items())),
        ]
        return Table("Context", ("what", "value"), tuple(facts))

    def _values(self) -> Table:
        """The model's inputs and outputs, with the parameters of the segments' edges they become."""
        context = self.context
        rows = [_value_row("input", tensor, self._params_of(tensor.name, "inputs")) for tensor in context.inputs]
        rows += [_value_row("output", tensor, self._params_of(tensor.name, "outputs")) for tensor in context.outputs]
        return Table("Inputs and outputs", VALUE_COLUMNS, tuple(rows))

    def _params_of(self, value: str, side: str) -> list[QuantParams | None]:
        calls = (call for call in self.context.calls if not isinstance(call, HostCall))
        return [edge.tensor.params for call in calls for edge in getattr(call, side) if edge.value == value]

    def _parts(self) -> Table:
        columns = ("part", "runs on", "name", "reads", "writes", "bytes")
        rows = tuple(self._part_row(index) for index in range(len(self.context.calls)))
        return Table("Parts in the order of execution", columns, rows)

    def _part_row(self, index: int) -> tuple[Cell, ...]:
        call = self.context.calls[index]
        if isinstance(call, HostCall):
            return (index, "CPU", call.name, ", ".join(call.inputs), ", ".join(call.outputs), len(call.model))
        reads, writes = (", ".join(edge.value for edge in edges) for edges in (call.inputs, call.outputs))
        name = call.segment.name
        nbytes = sum(s.nbytes for s in self.context.container.sections.values() if _is_of(s.name, name))
        return (index, "NPU", name, reads, writes, nbytes)

    def _sections(self) -> Table:
        rows = tuple(
            (section.name, section.offset, section.nbytes, section.sha256[:SHORT_DIGEST])
            for section in self.context.container.sections.values()
        )
        return Table("Sections", ("section", "offset", "bytes", "SHA-256"), rows)


def inspect(path: str | Path) -> Inspection:
    """Reads all of a context; raises ContextError where a byte of it is not what was written."""
    context = read(path)
    context.verify()
    return Inspection(context)


def _is_of(section: str, segment: str) -> bool:
    return section.startswith(f"segment/{segment}/")


def _shape(shape: Iterable[int]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _params(params: QuantParams | None) -> str:
    if params is None:
        return ""
    if params.is_per_tensor:
        return f"{params.dtype.label}, scale {params.scale[0]:.8g}, zero point {params.zero_point[0]}"
    return f"{params.dtype.label}, {len(params.scale)} scales along axis {params.axis}"


def _value_row(role: str, tensor: Tensor, params: Iterable[QuantParams | None]) -> tuple[Cell, ...]:
    texts = dict.fromkeys(map(_params, params))
    return (role, tensor.name, tensor.dtype.label, _shape(tensor.shape), "; ".join(text for text in texts if text))


def _segment_tables(segment: StoredSegment) -> tuple[Table, ...]:
    title = f"Segment {segment.name}"
    steps = segment.steps
    measures = [
        Measure("steps", len(steps.steps), ""),
        Measure("kernels", len({step.kernel for step in steps.steps}), ""),
        Measure("arena", segment.arena_bytes, "bytes"),
        Measure("constants", segment.constants_bytes, "bytes"),
        *(Measure(f"object {key}", len(code), "bytes") for key, code in segment.objects.items()),
    ]
    if segment.graph is not None:
        measures.insert(0, Measure("units", len(segment.graph.units), ""))
    rows = [_value_row("input", tensor, (tensor.params,)) for tensor in segment.inputs]
    rows += [_value_row("output", tensor, (tensor.params,)) for tensor in segment.outputs]
    return (
        measure_table(measures, title),
        Table(f"{title}: edges", VALUE_COLUMNS, tuple(rows)),
        _step_table(f"{title}: steps", steps),
        _plan_table(f"{title}: memory plan", steps),
    )


def _step_table(title: str, steps: StepList) -> Table:
    rows = tuple(
        (index, step.kernel, _operands(step.operands, writes=False), _operands(step.operands, writes=True))
        for index, step in enumerate(steps.steps)
    )
    return Table(title, ("step", "kernel", "reads", "writes"), rows)


def _operands(operands: Iterable[Operand], writes: bool) -> str:
    chosen = (operand for operand in operands if (operand.writes if writes else operand.reads))
    return ", ".join(_place(operand) for operand in chosen)


def _place(operand: Operand) -> str:
    index = str(operand.index) if operand.area in (Area.INPUT, Area.OUTPUT) else ""
    return f"{operand.area.value}{index} {operand.offset}..{operand.end}"


def _plan_table(title: str, steps: StepList) -> Table:
    rows = tuple((life.offset, life.nbytes, life.first_step, life.last_step) for life in memory_plan(steps))
    return Table(title, ("arena offset", "bytes", "from step", "to step"), rows)


def _part_json(call: Any) -> dict[str, Any]:
    if isinstance(call, HostCall):
        sides: dict[str, Any] = {"inputs": list(call.inputs), "outputs": list(call.outputs)}
        return {"runs_on": "CPU", "name": call.name, "nbytes": len(call.model), **sides}
    inputs, outputs = ([_edge_json(edge) for edge in edges] for edges in (call.inputs, call.outputs))
    return {"runs_on": "NPU", "name": call.segment.name, "inputs": inputs, "outputs": outputs}


def _edge_json(edge: Edge) -> dict[str, Any]:
    return {"value": edge.value, "tensor": edge.tensor.to_json(), "is_float": edge.is_float}


def _segment_json(segment: StoredSegment) -> dict[str, Any]:
    return {
        "name": segment.name,
        "units": len(segment.graph.units) if segment.graph is not None else None,
        "inputs": [tensor.to_json() for tensor in segment.inputs],
        "outputs": [tensor.to_json() for tensor in segment.outputs],
        "arena_bytes": segment.arena_bytes,
        "constants_bytes": segment.constants_bytes,
        "objects": {key: len(code) for key, code in segment.objects.items()},
        "steps": [step.to_json() for step in segment.steps.steps],
        "memory_plan": [life.to_json() for life in memory_plan(segment.steps)],
    }
