"""ONNX test data: folders ``test_data_set_*`` with ``input_0.pb``, ``input_1.pb`` and so on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from hexqdq.app.calibration.signature import Array, Feed, Inputs, fitted, place
from hexqdq.errors import CalibrationError

FOLDERS = "test_data_set_*"
FILES = "input_*.pb"


def data_sets(folder: Path) -> list[Path]:
    """The folders with inputs: ``folder`` itself, else those of it that are named as test data."""
    if any(folder.glob(FILES)):
        return [folder]
    return sorted((path for path in folder.glob(FOLDERS) if path.is_dir()), key=_number)


def _number(path: Path) -> tuple[int, str]:
    """Ten comes after nine."""
    end = path.stem.rpartition("_")[2]
    return (int(end) if end.isdecimal() else -1, path.name)


class DataSets:
    """A sample a folder; inputs are in the order of the model's."""

    def __init__(self, folders: Sequence[Path], inputs: Inputs) -> None:
        self._folders, self._inputs = tuple(folders), inputs

    def __len__(self) -> int:
        return len(self._folders)

    def __iter__(self) -> Iterator[Feed]:
        for folder in self._folders:
            yield self._feed(folder)

    def _feed(self, folder: Path) -> Feed:
        files = sorted(folder.glob(FILES), key=_number)
        if len(files) != len(self._inputs):
            held = ", ".join(file.name for file in files) or "none"
            raise CalibrationError(
                str(folder),
                f"holds {len(files)} inputs ({held}); expected {len(self._inputs)}: {', '.join(self._inputs)}",
                "write input_0.pb, input_1.pb ... in the order of the model's inputs",
            )
        feed = {}
        for file, (name, signature) in zip(files, self._inputs.items(), strict=True):
            feed[name] = fitted(place(file, name), _read(file), signature, "write the test data of this very model")
        return feed


def _read(path: Path) -> Array:
    import onnx
    from onnx import numpy_helper

    try:
        tensor = onnx.TensorProto.FromString(path.read_bytes())
        array: Array = numpy_helper.to_array(tensor)
    except Exception as error:
        problem = f"is no ONNX TensorProto: {error or type(error).__name__}"
        raise CalibrationError(str(path), problem, "write it with onnx.numpy_helper.from_array") from error
    return array
