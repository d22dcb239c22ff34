"""Arm's TOSA reference model: an oracle that shares no code with hexqdq."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import numpy as np

from hexqdq.compile.product import TosaSegment
from hexqdq.numerics import from_tosa, to_tosa
from hexqdq.ops.unit import Array


def tool(name: str) -> Path:
    """A program of the tosa-tools package, past its Python wrapper."""
    return Path(str(metadata.distribution("tosa-tools").locate_file(f"bin/{name}")))


def _run(*command: str | Path) -> None:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


class TosaModel:
    """A segment serialised once, evaluated for any number of inputs."""

    def __init__(self, segment: TosaSegment) -> None:
        self._segment = segment
        self._folder = tempfile.TemporaryDirectory(prefix="tosa-")
        self._path = Path(self._folder.name)
        (self._path / "m.mlir").write_text(segment.text)
        target = f"--tosa-serialize=tosa-flatbuffer-filename={self._path / 'm.tosa'}"
        _run(tool("tosa-opt"), self._path / "m.mlir", target, "-o", "/dev/null")

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs in their edges' types."""
        tensors = self._segment.inputs
        arrays = [to_tosa(values, tensor.dtype) for values, tensor in zip(inputs, tensors, strict=True)]
        arrays += [values for _, values in self._segment.constants]
        sources = [self._path / f"x{index}.npy" for index in range(len(arrays))]
        for path, values in zip(sources, arrays, strict=True):
            np.save(path, values)
        results = [self._path / f"y{index}.npy" for index in range(len(self._segment.outputs))]
        self._evaluate(sources, results)
        return [
            from_tosa(np.load(path).reshape(tensor.shape), tensor.dtype).astype(tensor.dtype.numpy)
            for path, tensor in zip(results, self._segment.outputs, strict=True)
        ]

    def close(self) -> None:
        """Remove the files."""
        self._folder.cleanup()

    def _evaluate(self, sources: Sequence[Path], results: Sequence[Path]) -> None:
        options: dict[str, str | Path] = {
            "--tosa_file": self._path / "m.tosa",
            "--flatbuffer_dir": self._path,
            "--output_dir": self._path,
            "--ifm_name": ",".join(f"TosaInput_{index}" for index in range(len(sources))),
            "--ifm_file": ",".join(map(str, sources)),
            "--ofm_name": ",".join(f"TosaOutput_{index}" for index in range(len(results))),
            "--ofm_file": ",".join(map(str, results)),
        }
        _run(tool("tosa_reference_model"), *[part for pair in options.items() for part in pair])
