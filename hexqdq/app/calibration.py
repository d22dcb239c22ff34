"""Calibration data as feeds: a folder of .npz files or one .npz with samples stacked per input."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq.errors import CalibrationError

Array = NDArray[Any]
Feed = dict[str, Array]


@dataclass(frozen=True)
class Signature:
    """What a model takes as one input: its static shape and its numpy type."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class CalibrationSet:
    """Feeds read one at a time; iterate as often as needed, ``len`` says how many there are."""

    def __init__(self, path: str | Path, inputs: Mapping[str, Signature]) -> None:
        self.path = Path(path)
        self.inputs = dict(inputs)
        self._files = _files(self.path)
        self._length = len(self._files) if self.path.is_dir() else self._stacked_length()

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Feed]:
        if self.path.is_dir():
            for file in self._files:
                arrays = _read(file)
                yield {name: self._sample(file, arrays, name) for name in self.inputs}
            return
        stacks = self._stacks()
        for index in range(self._length):
            yield {name: _take(stacks[name], index, self.inputs[name].shape) for name in self.inputs}

    def _sample(self, file: Path, arrays: Mapping[str, Array], name: str) -> Array:
        array = self._named(file, arrays, name)
        expected = self.inputs[name]
        if array.shape != expected.shape:
            raise CalibrationError(
                f"{file}[{name!r}]", f"has shape {array.shape}; expected {expected.shape}", "write one sample per file"
            )
        return array

    def _stacks(self) -> Feed:
        arrays = _read(self.path)
        stacks = {name: self._named(self.path, arrays, name) for name in self.inputs}
        for name, stack in stacks.items():
            shape = self.inputs[name].shape
            if _layout(stack.shape, shape) is None:
                raise CalibrationError(
                    f"{self.path}[{name!r}]",
                    f"has shape {stack.shape}; expected samples of shape {shape} stacked along a first axis",
                    "stack with np.stack, or along axis 0 where the model's first dimension is 1",
                )
        return stacks

    def _stacked_length(self) -> int:
        lengths = {name: len(stack) for name, stack in self._stacks().items()}
        if len(set(lengths.values())) != 1 or not all(lengths.values()):
            found = ", ".join(f"{name}: {length}" for name, length in lengths.items())
            raise CalibrationError(str(self.path), f"holds {found} samples; expected as many of each, at least one")
        return next(iter(lengths.values()))

    def _named(self, file: Path, arrays: Mapping[str, Array], name: str) -> Array:
        if name not in arrays:
            raise CalibrationError(
                str(file), f"has no {name!r}, only {', '.join(arrays)}", "name the arrays after the model's inputs"
            )
        array, wanted = arrays[name], self.inputs[name].dtype
        if array.dtype != wanted and not np.can_cast(array.dtype, wanted, "same_kind"):
            raise CalibrationError(f"{file}[{name!r}]", f"holds {array.dtype}; expected {wanted}")
        return np.ascontiguousarray(array, wanted)


def _layout(stacked: tuple[int, ...], shape: tuple[int, ...]) -> str | None:
    """How samples of ``shape`` lie in an array of shape ``stacked``: a new axis, or the batch axis of 1."""
    if stacked[1:] == shape:
        return "stacked"
    if shape and shape[0] == 1 and len(stacked) == len(shape) and stacked[1:] == shape[1:]:
        return "batched"
    return None


def _take(stack: Array, index: int, shape: tuple[int, ...]) -> Array:
    return stack[index] if _layout(stack.shape, shape) == "stacked" else stack[index : index + 1]


def _files(path: Path) -> tuple[Path, ...]:
    if path.is_dir():
        files = tuple(sorted(path.glob("*.npz")))
        if not files:
            raise CalibrationError(str(path), "holds no .npz file", "write one .npz per sample, keyed by input name")
        return files
    if path.suffix == ".npz" and path.is_file():
        return (path,)
    found = "is neither a folder nor an .npz file" if path.exists() else "does not exist"
    raise CalibrationError(str(path), found, "give a folder of .npz files or one .npz of stacked samples")


def _read(path: Path) -> Feed:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise CalibrationError(str(path), f"cannot be read: {error}", "write it with numpy.savez") from error
