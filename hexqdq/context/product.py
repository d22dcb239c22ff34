"""What a context hands on: a compiled model read in place from a mapped file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq.compile.product import Edge, StepList
from hexqdq.context import schema
from hexqdq.context.container import Container, well_formed
from hexqdq.ops.unit import Tensor, UnitGraph
from hexqdq.report import Decision

Array = NDArray[Any]


class StoredObjects(Mapping[str, memoryview]):
    """The shared objects of a segment by key; each is checked when taken."""

    def __init__(self, container: Container, segment: str, keys: tuple[str, ...]) -> None:
        self._container = container
        self._segment = segment
        self._keys = keys

    def __getitem__(self, key: str) -> memoryview:
        if key not in self._keys:
            raise KeyError(key)
        return self._container.section(f"segment/{self._segment}/object/{key}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


@dataclass(frozen=True, eq=False)
class StoredSegment:
    """A segment in the file; everything past the header's table is read, and checked, when asked for."""

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    arena_bytes: int
    constants_bytes: int
    objects: StoredObjects
    has_units: bool
    container: Container

    @property
    def constants(self) -> memoryview:
        """The packed constant section, in place."""
        place = f"segment/{self.name}/constants"
        constants = self.container.section(place)
        with well_formed(self.container.source, place):
            if len(constants) != self.constants_bytes:
                raise ValueError(f"{len(constants)} bytes; expected {self.constants_bytes}")
        return constants

    @cached_property
    def steps(self) -> StepList:
        place = f"segment/{self.name}/steps"
        with well_formed(self.container.source, place):
            return StepList.from_json(schema.check(json.loads(bytes(self.container.section(place))), schema.STEPS))

    @property
    def tosa_text(self) -> str:
        """The segment as MLIR module text."""
        place = f"segment/{self.name}/tosa"
        with well_formed(self.container.source, place):
            return bytes(self.container.section(place)).decode()

    @cached_property
    def graph(self) -> UnitGraph | None:
        """The units, their constants in place; None where compiling began at TOSA text."""
        place = f"segment/{self.name}/units"
        if not self.has_units:
            return None
        values = self.container.section(f"segment/{self.name}/unit_constants")
        with well_formed(self.container.source, place):
            data = schema.check(json.loads(bytes(self.container.section(place))), schema.UNITS)
            constants = {entry["name"]: _array(entry, values) for entry in data["constants"]}
            return UnitGraph.from_json(data["graph"], constants)


def _array(entry: Mapping[str, Any], values: memoryview) -> Array:
    shape = tuple(entry["shape"])
    count = int(np.prod(shape, dtype=np.int64))
    return np.frombuffer(values, np.dtype(entry["dtype"]), count, entry["offset"]).reshape(shape)


@dataclass(frozen=True, eq=False)
class SegmentCall:
    """An NPU part in the order of execution: the model's values around one segment."""

    segment: StoredSegment
    inputs: tuple[Edge, ...]
    outputs: tuple[Edge, ...]


@dataclass(frozen=True, eq=False)
class HostCall:
    """A host part in the order of execution."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    container: Container

    @property
    def model(self) -> bytes:
        """The part as an ONNX model."""
        return bytes(self.container.section(f"host/{self.name}"))


Call = SegmentCall | HostCall


@dataclass(frozen=True, eq=False)
class Context:
    """A compiled model as the file holds it.

    ``calls`` are the parts in order; ``versions`` the packages that wrote the file.
    """

    source: str
    target: str
    digest: str
    versions: Mapping[str, str]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    calls: tuple[Call, ...]
    segments: tuple[StoredSegment, ...]
    container: Container

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        """Where every node of the model runs."""
        with well_formed(self.source, "report"):
            return tuple(Decision.from_json(entry) for entry in self._report["decisions"])

    @cached_property
    def origin(self) -> Mapping[str, tuple[str, ...]]:
        """Canonical node name to the names of the nodes it came from."""
        with well_formed(self.source, "report"):
            return {name: tuple(nodes) for name, nodes in self._report["origin"].items()}

    @cached_property
    def _report(self) -> Any:
        with well_formed(self.source, "report"):
            return schema.check(json.loads(bytes(self.container.section("report"))), schema.REPORT)

    def verify(self) -> None:
        """Reads and checks everything in the file; raises ContextError for the first fault."""
        self.container.verify()
        for segment in self.segments:
            _ = segment.constants, segment.steps, segment.tosa_text, segment.graph, dict(segment.objects)
        _ = self.decisions, self.origin
