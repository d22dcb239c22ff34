"""Writes a compiled model as one context file and reads it back in place."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hexqdq.compile.product import CompiledModel, CompiledSegment, Edge, HostPart, Part
from hexqdq.context import schema
from hexqdq.context.container import Buffer, Container, canonical_json, chunks, open_container, well_formed
from hexqdq.context.product import Call, Context, HostCall, SegmentCall, StoredObjects, StoredSegment
from hexqdq.errors import ContextError
from hexqdq.files import replace_file
from hexqdq.ops.unit import Tensor, UnitGraph

COMPILER_PACKAGES = ("hexqdq", "numpy", "onnx", "llvmlite", "xtc-mlir-python-bindings", "ziglang")
ARRAY_ALIGNMENT = 64
"""Bytes to which the units' constants are aligned in their section."""

Sections = list[tuple[str, Buffer]]


def write(compiled: CompiledModel, path: str | os.PathLike[str]) -> Path:
    """Writes the context beside its final name, syncs and renames it; equal content gives equal bytes.

    Raises ContextError where the file cannot be written; then nothing is left behind.
    """
    return replace_file(Path(path), _chunks(compiled), ContextError)


def to_bytes(compiled: CompiledModel) -> bytes:
    """The same bytes that ``write`` would write."""
    return b"".join(_chunks(compiled))


def read(source: str | os.PathLike[str] | Buffer) -> Context:
    """Maps a context file, or takes its bytes; raises ContextError saying what was found and expected."""
    container = open_container(source if isinstance(source, (bytes, memoryview)) else Path(source))
    with well_formed(container.source, "header"):
        return _context(container)


def _chunks(compiled: CompiledModel) -> Iterable[Buffer]:
    _check_names(compiled)
    sections: Sections = [("graph", canonical_json([_part_json(part) for part in compiled.parts]))]
    report = {
        "decisions": [decision.to_json() for decision in compiled.decisions],
        "origin": {name: list(nodes) for name, nodes in compiled.origin.items()},
    }
    sections.append(("report", canonical_json(report)))
    sections += [(f"host/{part.name}", part.model) for part in compiled.parts if isinstance(part, HostPart)]
    for segment in compiled.segments:
        sections += _segment_sections(segment)
    return chunks(_header(compiled), sections)


def _check_names(compiled: CompiledModel) -> None:
    """Sections are found by name: names are unique, and every NPU part has its segment."""
    for kind, names in (
        ("segment", [segment.name for segment in compiled.segments]),
        ("host part", [part.name for part in compiled.parts if isinstance(part, HostPart)]),
    ):
        if len(set(names)) != len(names):
            raise ContextError(f"{kind} names {', '.join(names)}", "are not unique; expected one name each")
    compiled_names = {segment.name for segment in compiled.segments}
    for part in compiled.parts:
        if not isinstance(part, HostPart) and part.name not in compiled_names:
            raise ContextError(f"NPU part {part.name!r}", "has no compiled segment; expected one of its name")


def _header(compiled: CompiledModel) -> dict[str, Any]:
    return {
        "target": compiled.target,
        "digest": compiled.digest,
        "versions": package_versions(),
        "inputs": _tensors_json(compiled.inputs),
        "outputs": _tensors_json(compiled.outputs),
        "segments": [
            {
                "name": segment.name,
                "inputs": _tensors_json(segment.inputs),
                "outputs": _tensors_json(segment.outputs),
                "arena_bytes": segment.steps.arena_bytes,
                "constants_bytes": len(segment.constants),
                "objects": sorted(segment.objects),
                "has_units": segment.graph is not None,
            }
            for segment in compiled.segments
        ],
    }


def package_versions() -> dict[str, str]:
    """The installed packages that shape what compile writes."""
    import importlib.metadata

    found = {}
    for name in COMPILER_PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def _tensors_json(tensors: Iterable[Tensor]) -> list[dict[str, Any]]:
    return [tensor.to_json() for tensor in tensors]


def _edges_json(edges: Iterable[Edge]) -> list[dict[str, Any]]:
    return [{"value": e.value, "tensor": e.tensor.to_json(), "is_float": e.is_float} for e in edges]


def _part_json(part: Part) -> dict[str, Any]:
    if isinstance(part, HostPart):
        return {"host": part.name, "inputs": list(part.inputs), "outputs": list(part.outputs)}
    return {"segment": part.name, "inputs": _edges_json(part.inputs), "outputs": _edges_json(part.outputs)}


def _segment_sections(segment: CompiledSegment) -> Sections:
    place = f"segment/{segment.name}"
    sections: Sections = [
        (f"{place}/tosa", segment.tosa.text.encode()),
        (f"{place}/steps", canonical_json(segment.steps.to_json())),
    ]
    if segment.graph is not None:
        units, values = _units(segment.graph)
        sections += [(f"{place}/units", units), (f"{place}/unit_constants", values)]
    sections += [(f"{place}/object/{key}", segment.objects[key]) for key in sorted(segment.objects)]
    sections.append((f"{place}/constants", segment.constants))
    return sections


def _units(graph: UnitGraph) -> tuple[bytes, bytes]:
    """The graph with a table of its constants, and the constants' bytes."""
    table: list[dict[str, Any]] = []
    values = bytearray()
    for name, array in sorted(graph.constants().items()):
        values += bytes(-len(values) % ARRAY_ALIGNMENT)
        little = array.astype(array.dtype.newbyteorder("<"))
        table.append({"name": name, "dtype": little.dtype.str, "shape": list(array.shape), "offset": len(values)})
        values += little.tobytes()
    return canonical_json({"graph": graph.to_json(), "constants": table}), bytes(values)


def _tensors(data: Iterable[Mapping[str, Any]]) -> tuple[Tensor, ...]:
    return tuple(Tensor.from_json(entry) for entry in data)


def _edges(data: Iterable[Mapping[str, Any]]) -> tuple[Edge, ...]:
    return tuple(Edge(e["value"], Tensor.from_json(e["tensor"]), e["is_float"]) for e in data)


def _segment(container: Container, data: Mapping[str, Any]) -> StoredSegment:
    objects = StoredObjects(container, data["name"], tuple(data["objects"]))
    inputs, outputs = _tensors(data["inputs"]), _tensors(data["outputs"])
    sizes = data["arena_bytes"], data["constants_bytes"]
    return StoredSegment(data["name"], inputs, outputs, *sizes, objects, data["has_units"], container)


def _call(container: Container, segments: Mapping[str, StoredSegment], data: Mapping[str, Any]) -> Call:
    if "host" in data:
        return HostCall(data["host"], tuple(data["inputs"]), tuple(data["outputs"]), container)
    return SegmentCall(segments[data["segment"]], _edges(data["inputs"]), _edges(data["outputs"]))


def _context(container: Container) -> Context:
    header = container.header
    segments = tuple(_segment(container, entry) for entry in header["segments"])
    by_name = {segment.name: segment for segment in segments}
    with well_formed(container.source, "graph"):
        graph = schema.check(json.loads(bytes(container.section("graph"))), schema.GRAPH)
    return Context(
        source=container.source,
        target=header["target"],
        digest=header["digest"],
        versions=header["versions"],
        inputs=_tensors(header["inputs"]),
        outputs=_tensors(header["outputs"]),
        calls=tuple(_call(container, by_name, entry) for entry in graph),
        segments=segments,
        container=container,
    )
