"""Numpy files: a sample a file, or samples stacked in one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hexqdq.app.calibration.signature import Array, Feed, Inputs, Signature, fitted, named, only_input, place, typed
from hexqdq.errors import CalibrationError

ONE_A_FILE = "write one sample per file, preprocessed as the model takes it"
STACKING = "stack with np.stack, or along axis 0 where the model's first dimension is 1"


class SampleFiles:
    """A sample a file; ``read`` gives its arrays by input name."""

    def __init__(self, files: Sequence[Path], inputs: Inputs, read: Callable[[Path], Mapping[str, Array]]) -> None:
        self._files, self._inputs, self._read = tuple(files), inputs, read

    def __len__(self) -> int:
        return len(self._files)

    def __iter__(self) -> Iterator[Feed]:
        for file in self._files:
            arrays = self._read(file)
            yield {
                name: fitted(place(file, name), named(file, arrays, name), signature, ONE_A_FILE)
                for name, signature in self._inputs.items()
            }


class Stacked:
    """Samples along the first axis of an array per input."""

    def __init__(self, source: Path, arrays: Mapping[str, Array], inputs: Inputs) -> None:
        self._source, self._inputs = source, inputs
        self._stacks = {name: self._stack(named(source, arrays, name), name) for name in inputs}
        self._length = self._common_length()

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Feed]:
        for index in range(self._length):
            yield {name: self._sample(name, index) for name in self._inputs}

    def _sample(self, name: str, index: int) -> Array:
        signature = self._inputs[name]
        where = f"{place(self._source, name)}, sample {index}"
        return fitted(where, np.reshape(self._stacks[name][index], signature.shape), signature, STACKING)

    def _stack(self, array: Array, name: str) -> Array:
        signature = self._inputs[name]
        where = place(self._source, name)
        if not _is_stack(array.shape, signature):
            expected = f"expected samples of shape {signature.shape} stacked along a first axis"
            raise CalibrationError(where, f"has shape {array.shape}; {expected}", STACKING)
        typed(where, array[:1], signature.dtype)
        return array

    def _common_length(self) -> int:
        lengths = {name: len(stack) for name, stack in self._stacks.items()}
        if len(set(lengths.values())) != 1 or not all(lengths.values()):
            found = ", ".join(f"{name}: {length}" for name, length in lengths.items())
            problem = f"holds {found} samples; expected as many of each, at least one"
            raise CalibrationError(str(self._source), problem, "write as many samples of each input")
        return next(iter(lengths.values()))


def _is_stack(stacked: tuple[int, ...], signature: Signature) -> bool:
    """Whether samples lie along a new axis, or along the batch axis of a model whose batch is 1."""
    shape = signature.shape
    batched = bool(shape) and shape[0] == 1 and len(stacked) == len(shape) and stacked[1:] == shape[1:]
    return bool(stacked) and (stacked[1:] == shape or batched)


def npz_folder(files: Sequence[Path], inputs: Inputs) -> SampleFiles:
    return SampleFiles(files, inputs, read_npz)


def npy_folder(folder: Path, files: Sequence[Path], inputs: Inputs) -> SampleFiles:
    """Files without names feed the one input of a model that has one."""
    name, _ = only_input(folder, inputs, ".npy files, which carry no names")
    return SampleFiles(files, inputs, lambda file: {name: read_npy(file)})


def npz_stack(path: Path, inputs: Inputs) -> Stacked:
    return Stacked(path, read_npz(path), inputs)


def npy_stack(path: Path, inputs: Inputs) -> Stacked:
    """A stack for the one input of a model that has one."""
    name, _ = only_input(path, inputs, "one array without a name")
    return Stacked(path, {name: read_npy(path)}, inputs)


def read_npz(path: Path) -> dict[str, Array]:
    """The arrays of an .npz file by name; raises CalibrationError where it is none."""
    loaded = _load(path, "numpy.savez")
    if not isinstance(loaded, dict):
        raise CalibrationError(
            str(path), "is a single array; expected .npz arrays by name", "write it with numpy.savez"
        )
    return loaded


def read_npy(path: Path) -> Array:
    """The array of an .npy file; raises CalibrationError where it is none."""
    loaded = _load(path, "numpy.save")
    if isinstance(loaded, dict):
        raise CalibrationError(str(path), "is an archive of arrays; expected one .npy array", "name it .npz")
    return loaded


def _load(path: Path, writer: str) -> dict[str, Array] | Array:
    try:
        loaded: Any = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        with loaded:
            return {name: loaded[name] for name in loaded.files}
    except Exception as error:
        problem = f"cannot be read: {error or type(error).__name__}"
        raise CalibrationError(str(path), problem, f"write it with {writer}") from error
