"""What partition hands on: the parts of a model in order, NPU segments as units and host parts as ONNX."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hexqdq.ops.unit import Tensor, UnitGraph
from hexqdq.report import Decision


@dataclass(frozen=True)
class Edge:
    """A value of the model that crosses a segment's border.

    ``value`` names it in the model, ``tensor`` is what the segment sees. Where ``is_float``, the
    model's value is float32: the session quantizes it on the way in and dequantizes it on the way
    out, with ``tensor.params``.
    """

    value: str
    tensor: Tensor
    is_float: bool = False


@dataclass(frozen=True, eq=False)
class NpuPart:
    """One segment for the NPU; ``inputs`` and ``outputs`` are in the order of the graph's own."""

    graph: UnitGraph
    inputs: tuple[Edge, ...]
    outputs: tuple[Edge, ...]

    @property
    def name(self) -> str:
        """The segment's name, by which its compiled form is found."""
        return self.graph.name


@dataclass(frozen=True, eq=False)
class HostPart:
    """Nodes that stay on the CPU: an ONNX model with the values it reads and writes."""

    name: str
    model: bytes
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


Part = NpuPart | HostPart


@dataclass(frozen=True, eq=False)
class PartitionedModel:
    """The parts in an order in which they can run, and where every node went.

    ``inputs`` and ``outputs`` are the whole model's, float32 or integer, without parameters;
    ``digest`` is that of the model's content; ``origin`` maps canonical nodes to source nodes.
    """

    digest: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    parts: tuple[Part, ...]
    decisions: tuple[Decision, ...]
    origin: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
