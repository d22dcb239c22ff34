"""Running a context once from .npy files: what ``hexqdq run`` does."""

from __future__ import annotations

import io
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq.app.session import InferenceSession
from hexqdq.app.session_source import is_model
from hexqdq.errors import InputError, UsageError
from hexqdq.files import replace_file, require_place
from hexqdq.report import Cell, Measure, Progress, Table, measure_table

Array = NDArray[Any]

COMPILING = "compile the model, unless the cache has it"


@dataclass(frozen=True, eq=False)
class OnceRun:
    """The outputs of one run by name, and what it took."""

    outputs: Mapping[str, Array]
    measures: tuple[Measure, ...]

    def tables(self) -> tuple[Table, ...]:
        columns = ("output", "type", "shape", "smallest", "largest", "argmax")
        rows = tuple(_row(name, values) for name, values in self.outputs.items())
        return Table("Outputs", columns, rows), measure_table(self.measures, "Run")

    def to_json(self) -> dict[str, Any]:
        return {"outputs": self.tables()[0].to_json(), "measures": self.measures}

    def write(self, path: Path) -> None:
        """Writes the outputs as .npz; raises UsageError where the path cannot be written."""
        archive = io.BytesIO()
        np.savez(archive, **dict(self.outputs))
        replace_file(path, [archive.getbuffer()])


def run_once(
    model: Path,
    files: Mapping[str, str],
    executor: str,
    output: Path | None = None,
    progress: Progress | None = None,
) -> OnceRun:
    """Loads a context, or a QDQ model through the cache, and runs it on arrays read from .npy files.

    The outputs are written to ``output``, an .npz, where one is given.
    """
    if output is not None and output.suffix != ".npz":
        raise UsageError(f"output {output}", "is no .npz file", "give a name that ends in .npz")
    require_place(output)
    feeds = {name: _read(name, Path(file)) for name, file in files.items()}
    started = time.perf_counter()
    told = progress if progress is not None and is_model(model) else None
    if told is not None:
        told(COMPILING, 0, 1)
    session = InferenceSession(str(model), provider_options=[{"executor": executor}])
    loaded = time.perf_counter()
    if told is not None:
        told(COMPILING, 1, 1)
    names = [output.name for output in session.get_outputs()]
    results = session.run(None, feeds)
    ended = time.perf_counter()
    measures = (
        Measure("load time", (loaded - started) * 1e3, "ms"),
        Measure("run time, the first", (ended - loaded) * 1e3, "ms"),
    )
    outcome = OnceRun(dict(zip(names, results, strict=True)), measures)
    if output is not None:
        outcome.write(output)
    return outcome


def _read(name: str, path: Path) -> Array:
    try:
        values = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(f"input {name!r}", f"{path} cannot be read: {error}", "write it with numpy.save") from error
    if not isinstance(values, np.ndarray):
        raise InputError(f"input {name!r}", f"{path} holds several arrays", "give one .npy file per input")
    return values


def _row(name: str, values: Array) -> tuple[Cell, ...]:
    shape = "x".join(map(str, values.shape)) or "scalar"
    if not values.size:
        return (name, str(values.dtype), shape, None, None, None)
    low, high = values.min().item(), values.max().item()
    return (name, str(values.dtype), shape, low, high, int(values.argmax()))
