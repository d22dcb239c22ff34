"""The numpy reference as an executor: slow, and the definition of every result."""

from __future__ import annotations

from collections.abc import Sequence

from hexqdq.context.executors.base import Array, Counters, LoadedSegment, Segment, checked_inputs
from hexqdq.errors import ExecutorError
from hexqdq.ops import reference
from hexqdq.ops.unit import UnitGraph


class ReferenceSegment:
    """A segment's units, computed one by one."""

    last_counters: Counters | None = None

    def __init__(self, segment: Segment, graph: UnitGraph) -> None:
        self._segment = segment
        self._graph = graph

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        arrays = checked_inputs(self._segment, inputs)
        names = (tensor.name for tensor in self._graph.inputs)
        outputs = reference.run(self._graph, dict(zip(names, arrays, strict=True)))
        return [outputs[tensor.name] for tensor in self._graph.outputs]

    def close(self) -> None:
        """Holds nothing to free."""


class ReferenceExecutor:
    """Runs segments by the ops' numpy definitions."""

    name = "reference"

    def load(self, segment: Segment) -> LoadedSegment:
        if segment.graph is None:
            raise ExecutorError(
                f"segment {segment.name!r}",
                "has no units, only TOSA; expected a segment that partition made",
                "run it with executor host or qemu",
            )
        return ReferenceSegment(segment, segment.graph)
