"""From what ``--calib`` is given to feeds: its form is told by what is there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from hexqdq.app.calibration import arrays, function, pictures, protobufs
from hexqdq.app.calibration.pictures import PictureOptions
from hexqdq.app.calibration.signature import Feed, Inputs
from hexqdq.errors import CalibrationError, UsageError

FORMS = "a folder of .npz, .npy, pictures or test_data_set_* folders, one stacked .npz or .npy, or module:function"
NEXT = f"give {FORMS}"
PICTURE = "picture"
DATA_SET = "test data"


def open_calibration(source: str | Path, inputs: Inputs, options: PictureOptions | None = None) -> Iterable[Feed]:
    """The feeds of a folder, a file or a ``module:function``; iterating reads them one at a time.

    Raises CalibrationError where there is nothing to read, and later where a sample does not fit.
    ``options`` are for pictures and refused with anything else.
    """
    if not str(source):
        raise CalibrationError("calibration", "the path is empty; expected calibration data", NEXT)
    path = Path(source)
    if path.is_dir():
        return _folder(path, inputs, options)
    if path.is_file():
        return _file(path, inputs, options)
    if function.FORM.fullmatch(str(source)) and not path.exists():
        _no_picture_options(str(source), options)
        return function.call(str(source), inputs)
    found = "is no file and no folder" if path.exists() else "does not exist"
    raise CalibrationError(str(source), f"{found}; expected calibration data", NEXT)


def _folder(folder: Path, inputs: Inputs, options: PictureOptions | None) -> Iterable[Feed]:
    files = _visible(folder)
    kinds = Counter(kind for kind in map(_kind, files) if kind)
    data_sets = protobufs.data_sets(folder)
    if data_sets:
        kinds[DATA_SET] = len(data_sets)
    if not kinds:
        files = [file for file in sorted(folder.rglob("*")) if _kind(file) == PICTURE and file.is_file()]
        kinds = Counter({PICTURE: len(files)} if files else {})
    if len(kinds) != 1:
        held = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items(), key=str)) or _nothing(folder)
        raise CalibrationError(str(folder), f"holds {held}; expected one kind of calibration data", NEXT)
    (kind,) = kinds
    chosen = [file for file in files if _kind(file) == kind]
    if kind == PICTURE:
        return pictures.Pictures(folder, chosen, inputs, options or PictureOptions())
    _no_picture_options(str(folder), options)
    if kind == DATA_SET:
        return protobufs.DataSets(data_sets, inputs)
    return arrays.npz_folder(chosen, inputs) if kind == ".npz" else arrays.npy_folder(folder, chosen, inputs)


def _file(path: Path, inputs: Inputs, options: PictureOptions | None) -> Iterable[Feed]:
    kind = _kind(path)
    if kind == PICTURE:
        return pictures.Pictures(path, [path], inputs, options or PictureOptions())
    _no_picture_options(str(path), options)
    if kind == ".npz":
        return arrays.npz_stack(path, inputs)
    if kind == ".npy":
        return arrays.npy_stack(path, inputs)
    raise CalibrationError(str(path), f"is a {path.suffix or 'nameless kind of'} file; expected calibration data", NEXT)


def _visible(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    except OSError as error:
        raise CalibrationError(str(folder), f"cannot be read: {error.strerror}", "check the permissions") from error


def _kind(path: Path) -> str | None:
    suffix = path.suffix.lower()
    if suffix in (".npz", ".npy"):
        return suffix
    return PICTURE if suffix in pictures.SUFFIXES else None


def _nothing(folder: Path) -> str:
    held = sorted(path.name for path in folder.iterdir())
    return f"none, only {', '.join(held[:4])}" if held else "nothing"


def _no_picture_options(source: str, options: PictureOptions | None) -> None:
    if options is not None:
        problem = f"are for pictures, but {source} holds none"
        raise UsageError("--image-size, --mean, --std, --white, --layout, --channels", problem, "leave them out")
