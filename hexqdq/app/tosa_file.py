"""``hexqdq compile model.mlir``: a file with one function of TOSA integer operations."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hexqdq import driver
from hexqdq.errors import CompileError, ModelError, UnsupportedError, UsageError
from hexqdq.ops.unit import Tensor, UnitGraph
from hexqdq.partition.product import Edge, NpuPart, PartitionedModel
from hexqdq.report import Decision
from hexqdq.target import host_targets

if TYPE_CHECKING:
    from hexqdq.compile.product import TosaSegment

SUFFIX = ".mlir"
BESIDE = ".npz"
"""What ``--dump`` writes beside a text: constants and edges."""


def compile_text(path: Path, options: driver.Options) -> driver.Outcome:
    """The stages from ``linalg`` on for the function in the file.

    Raises ModelError or UnsupportedError where the text holds what compile does not take.
    """
    if options.input_shapes:
        raise UsageError("--input-shape", "is for ONNX models; the text has its own shapes", "leave it out")
    segment, operations, digest = read(path)
    work = in_compile(segment, operations, digest, options)
    try:
        first = driver.run_stages(work, options, first="linalg", last="scheduled")
    except CompileError as error:
        raise UnsupportedError(str(path), f"does not lower: {error.problem}", error.hint) from error
    second = driver.run_stages(first.products["scheduled"], options, first="objects", last="objects")
    return driver.Outcome({**first.products, **second.products}, (*first.measures, *second.measures))


def read(path: Path) -> tuple[TosaSegment, tuple[str, ...], str]:
    """The function as a segment, its operations' names and a digest of what was read.

    Constants and edges are taken from the file that ``--dump`` wrote beside the text, if it is there.
    """
    from hexqdq.compile.given.beside import joined
    from hexqdq.compile.given.read import read_tosa

    text = _contents(path)
    try:
        segment, operations = read_tosa(text.decode(), str(path))
    except UnicodeDecodeError as error:
        raise ModelError(str(path), "is no text; expected MLIR in UTF-8", "give MLIR text, not bytecode") from error
    beside = path.with_suffix(BESIDE)
    data = _contents(beside) if beside.exists() else b""
    if data:
        segment = joined(segment, text.decode(), data, str(beside))
    return segment, operations, hashlib.sha256(text + data).hexdigest()


def in_compile(
    segment: TosaSegment, operations: tuple[str, ...], digest: str, options: driver.Options
) -> driver.InCompile:
    """A model that is the one segment, with no units behind it."""
    from hexqdq.compile.pipeline import at_tosa

    inputs, outputs = segment.inputs, segment.outputs
    edges = (tuple(Edge(tensor.name, tensor) for tensor in side) for side in (inputs, outputs))
    part = NpuPart(UnitGraph(segment.name, inputs, outputs, ()), *edges)
    decisions = tuple(Decision(f"{name}_{index}", name, 0, None) for index, name in enumerate(operations))
    partitioned = PartitionedModel(digest, _bare(inputs), _bare(outputs), (part,), decisions)
    folder = options.dump / segment.name if options.dump else None
    return driver.InCompile(partitioned, (at_tosa(segment, None, options.target, host_targets(), folder),))


def _bare(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(replace(tensor, params=None) for tensor in tensors)


def _contents(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        problem = f"cannot be read: {error.strerror}; expected MLIR text"
        raise ModelError(str(path), problem, "check the path") from error
