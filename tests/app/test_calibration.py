"""Calibration data in every form, and what is said of data that do not fit."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sized
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper
from PIL import Image

from hexqdq.app.calibration.pictures import PictureOptions, options_from_text
from hexqdq.app.calibration.signature import Signature
from hexqdq.app.calibration.source import open_calibration
from hexqdq.errors import CalibrationError, HexqdqError, UsageError

Array = NDArray[Any]
F32 = np.dtype(np.float32)
IMAGE = {"image": Signature((1, 3, 4, 6), F32)}
TWO = {"a": Signature((1, 2), F32), "b": Signature((3,), np.dtype(np.int64))}

SAMPLES = np.random.default_rng(0).normal(size=(5, 1, 3, 4, 6)).astype(np.float32)


def save_npz_folder(folder: Path) -> Path:
    for index, sample in enumerate(SAMPLES):
        np.savez(folder / f"{index}.npz", image=sample)
    (folder / "labels.txt").write_text("0 1 2 3 4")
    return folder


def save_npy_folder(folder: Path) -> Path:
    for index, sample in enumerate(SAMPLES):
        np.save(folder / f"{index}.npy", sample)
    return folder


def save_stacked(folder: Path) -> Path:
    np.savez(folder / "s.npz", image=SAMPLES, label=np.arange(5))
    return folder / "s.npz"


def save_batched(folder: Path) -> Path:
    np.save(folder / "s.npy", SAMPLES[:, 0])
    return folder / "s.npy"


def save_data_sets(folder: Path) -> Path:
    for index, sample in enumerate(SAMPLES):
        made = folder / f"test_data_set_{index * 3}"
        made.mkdir()
        (made / "input_0.pb").write_bytes(numpy_helper.from_array(sample).SerializeToString())
        (made / "output_0.pb").write_bytes(b"not read")
    (folder / "model.onnx").write_bytes(b"not read")
    return folder


@pytest.mark.parametrize("save", [save_npz_folder, save_npy_folder, save_stacked, save_batched, save_data_sets])
def test_every_form_gives_the_same_feeds(save: Callable[[Path], Path], tmp_path: Path) -> None:
    feeds = open_calibration(save(tmp_path), IMAGE)
    assert isinstance(feeds, Sized) and len(feeds) == 5
    for _ in range(2):
        for feed, sample in zip(feeds, SAMPLES, strict=True):
            assert list(feed) == ["image"]
            assert feed["image"].dtype == np.float32
            assert np.array_equal(feed["image"], sample)


def test_two_inputs_and_kindred_types(tmp_path: Path) -> None:
    np.savez(tmp_path / "s.npz", a=np.ones((4, 2), np.float64), b=np.ones((4, 3), np.int32))
    feeds = list(open_calibration(tmp_path / "s.npz", TWO))
    assert len(feeds) == 4
    found = {name: Signature(array.shape, array.dtype) for name, array in feeds[0].items()}
    assert found == TWO


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    text = """
        import numpy as np
        good = {"a": np.zeros((1, 2), np.float32), "b": np.zeros(3, np.int64)}
        def listed(): return [good, good]
        def yielded():
            yield good
            yield good
        def fails(): raise OSError("no disk")
        def fails_late():
            yield good
            raise OSError("no disk")
        def number(): return 3
        def alone(): return good
        def arrays(): return [np.zeros(3)]
        def lacks(): return [{"a": good["a"]}]
        def more(): return [{**good, "c": 1}]
        def shape(): return [{**good, "b": np.zeros(4, np.int64)}]
    """
    lines = (line.removeprefix(" " * 8) for line in text.splitlines())
    (tmp_path / "some_feeds.py").write_text("\n".join(lines))
    (tmp_path / "broken_feeds.py").write_text("import nothing_there\n")
    monkeypatch.chdir(tmp_path)
    yield "some_feeds"
    sys.modules.pop("some_feeds", None)


def test_functions(module: str) -> None:
    listed, yielded = (open_calibration(f"{module}:{name}", TWO) for name in ("listed", "yielded"))
    assert isinstance(listed, Sized) and not isinstance(yielded, Sized)
    assert len(list(listed)) == len(list(yielded)) == 2


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("missing", "no attribute 'missing'"),
        ("good", "expected a function"),
        ("fails", "raised OSError: no disk"),
        ("fails_late", "sample 1: raised OSError: no disk"),
        ("number", "returned int"),
        ("alone", "returned dict"),
        ("arrays", "sample 0: is ndarray; expected arrays by input name"),
        ("lacks", "has no 'b', only a"),
        ("more", "has 'c', which is no input; expected a, b"),
        ("shape", "has shape (4,); expected (3,)"),
    ],
)
def test_bad_functions(name: str, said: str, module: str) -> None:
    with pytest.raises(CalibrationError) as raised:
        list(open_calibration(f"{module}:{name}", TWO))
    assert said in str(raised.value) and module in raised.value.subject and raised.value.hint


@pytest.mark.parametrize("source", ["broken_feeds:f", "nowhere.at_all:f"])
def test_bad_modules(source: str, module: str) -> None:
    with pytest.raises(CalibrationError, match="cannot be imported: ModuleNotFoundError"):
        open_calibration(source, TWO)


def picture(folder: Path, height: int = 8, width: int = 12) -> Array:
    pixels = np.random.default_rng(1).integers(0, 256, (height, width, 3), np.uint8)
    folder.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(folder / "p.png")
    return pixels


def one(source: Path, signature: Signature, options: PictureOptions | None = None) -> Array:
    (feed,) = open_calibration(source, {"x": signature}, options)
    return feed["x"]


def test_pictures_are_normalised_and_laid_out(tmp_path: Path) -> None:
    pixels = picture(tmp_path / "class" / "deeper")
    options = options_from_text(None, "0.5,0.25,0", "2", None, None, None)
    found = one(tmp_path, Signature((1, 3, 8, 12), F32), options)
    expected = (pixels / 255 - [0.5, 0.25, 0]) / 2
    assert np.allclose(found[0].transpose(1, 2, 0), expected, atol=1e-6)
    white = one(tmp_path, Signature((1, 8, 12, 3), F32), PictureOptions(white=255, channels="bgr"))
    assert np.allclose(white[0], pixels[:, :, ::-1], atol=1e-4)


def test_pixels_feed_uint8_as_they_are(tmp_path: Path) -> None:
    pixels = picture(tmp_path)
    assert np.array_equal(one(tmp_path / "p.png", Signature((1, 8, 12, 3), np.dtype(np.uint8)))[0], pixels)


def test_the_centre_is_cut_out(tmp_path: Path) -> None:
    pixels = picture(tmp_path)
    signature = Signature((1, 4, 6, 3), np.dtype(np.uint8))
    for size in ((8,), (8, 12)):
        assert np.array_equal(one(tmp_path, signature, PictureOptions(size=size))[0], pixels[2:6, 3:9])
    assert one(tmp_path, Signature((1, 1, 4, 6), F32), PictureOptions(size=(4,))).shape == (1, 1, 4, 6)


@pytest.mark.parametrize(
    ("shape", "layout", "said"),
    [
        ((1, 3, 8, 3), None, "--layout"),
        ((1, 3, 8, 3), "nhwc", None),
        ((1, 8, 8, 8), None, "1 or 3"),
        ((2, 3, 8, 8), None, "one picture"),
        ((1, 3, 8, 8), "nhwc", "does not fit"),
    ],
)
def test_layouts_that_are_open(shape: tuple[int, ...], layout: str | None, said: str | None, tmp_path: Path) -> None:
    picture(tmp_path)
    options = PictureOptions(layout=layout)
    if said is None:
        assert one(tmp_path, Signature(shape, F32), options).shape == shape
        return
    with pytest.raises(HexqdqError, match=said):
        one(tmp_path, Signature(shape, F32), options)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("size", "0x3"),
        ("size", "axb"),
        ("size", "1x2x3"),
        ("mean", "1,2"),
        ("mean", "nan"),
        ("mean", "red"),
        ("std", "0"),
        ("std", "-1,1,1"),
        ("white", 0.0),
        ("layout", "chw"),
        ("channels", "grey"),
    ],
)
def test_unknown_picture_options(option: str, value: Any) -> None:
    given: dict[str, Any] = dict.fromkeys(("size", "mean", "std", "white", "layout", "channels"))
    with pytest.raises(UsageError, match="expected"):
        options_from_text(**(given | {option: value}))


def test_picture_options_are_for_pictures(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="are for pictures"):
        open_calibration(save_stacked(tmp_path), IMAGE, PictureOptions())


def write(folder: Path, **files: Any) -> None:
    for name, content in files.items():
        path = folder / name.replace("__", ".")
        if isinstance(content, dict):
            np.savez(path, **content)
        elif isinstance(content, bytes):
            path.write_bytes(content)
        else:
            np.save(path, np.asarray(content))


ZEROS = np.zeros((1, 3, 4, 6), np.float32)
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "empty": ({}, "holds nothing"),
    "other": ({"a__csv": b"1,2"}, "holds none, only a.csv"),
    "mixed": ({"a__npz": {"image": ZEROS}, "b__png": b"?"}, "holds 1 .npz, 1 picture; expected one kind"),
    "name": ({"a__npz": {"img": ZEROS}}, "has no 'image', only img"),
    "shape": ({"a__npz": {"image": ZEROS[0]}}, "a.npz['image']: has shape (3, 4, 6); expected (1, 3, 4, 6)"),
    "type": ({"a__npz": {"image": ZEROS.astype(np.uint8)}}, "a.npz['image']: holds uint8; expected float32"),
    "text": ({"a__npz": {"image": ZEROS.astype(str)}}, "expected float32"),
    "objects": ({"a__npz": {"image": np.array([None])}}, "a.npz: cannot be read"),
    "nan": ({"a__npz": {"image": ZEROS * np.nan}}, "a.npz['image']: holds NaN (72 of 72 values)"),
    "infinite": ({"a__npz": {"image": ZEROS + np.inf}}, "holds infinite values"),
    "too large": ({"a__npz": {"image": ZEROS + np.float64(1e300)}}, "holds infinite values"),
    "damaged": ({"a__npz": b"PK\x03\x04 no archive"}, "a.npz: cannot be read"),
    "hollow": ({"a__npz": b""}, "a.npz: cannot be read"),
    "misnamed": ({"a__npy": ZEROS, "b__npy": b"\x93NUMPY"}, "b.npy: cannot be read"),
    "no picture": ({"a__png": b"\x89PNG"}, "a.png: is no picture"),
    "no protobuf": ({"input_0__pb": b"\xff\xff"}, "input_0.pb: is no ONNX TensorProto"),
    "two protobufs": ({"input_0__pb": b"", "input_1__pb": b""}, "holds 2 inputs (input_0.pb, input_1.pb); expected 1"),
}


@pytest.mark.parametrize("case", BAD)
def test_data_that_do_not_fit(case: str, tmp_path: Path) -> None:
    files, said = BAD[case]
    folder = tmp_path / "calib"
    folder.mkdir()
    write(folder, **files)
    with pytest.raises(CalibrationError) as raised:
        list(open_calibration(folder, IMAGE))
    assert said in str(raised.value)
    assert str(folder) in raised.value.subject
    assert raised.value.hint


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros((0, 3, 4, 6), np.float32), "at least one"),
        (np.zeros((5, 3, 4, 7), np.float32), "stacked along a first axis"),
        (np.zeros((), np.float32), "stacked along a first axis"),
        (np.zeros((5, 3, 4, 6), np.complex64), "expected float32"),
        (np.array([0, 0, np.nan]).reshape(3, 1, 1, 1) * np.ones((3, 3, 4, 6)), "sample 2: holds NaN"),
    ],
)
def test_stacks_that_do_not_fit(array: Array, said: str, tmp_path: Path) -> None:
    np.save(tmp_path / "s.npy", array)
    with pytest.raises(CalibrationError) as raised:
        list(open_calibration(tmp_path / "s.npy", IMAGE))
    assert said in str(raised.value) and "s.npy" in raised.value.subject and raised.value.hint


def test_integers_keep_their_values(tmp_path: Path) -> None:
    np.savez(tmp_path / "s.npz", x=np.array([[300]], np.int64))
    with pytest.raises(CalibrationError, match=r"holds values 300..300; expected uint8, 0..255"):
        list(open_calibration(tmp_path / "s.npz", {"x": Signature((1,), np.dtype(np.uint8))}))


@pytest.mark.parametrize("name", ["s.npy", "p.png", "folder"])
def test_nameless_data_for_several_inputs(name: str, tmp_path: Path) -> None:
    np.save(tmp_path / "s.npy", np.zeros(3))
    picture(tmp_path)
    (tmp_path / "folder").mkdir()
    np.save(tmp_path / "folder" / "s.npy", np.zeros(3))
    with pytest.raises(CalibrationError, match=r"has 2 inputs \(a, b\)"):
        open_calibration(tmp_path / name, TWO)


def test_protobufs_of_several_inputs(tmp_path: Path) -> None:
    for index, array in enumerate((np.zeros((1, 2), np.float32), np.arange(3))):
        proto: onnx.TensorProto = numpy_helper.from_array(array, "any name")
        (tmp_path / f"input_{index}.pb").write_bytes(proto.SerializeToString())
    (feed,) = open_calibration(tmp_path, TWO)
    assert list(feed) == ["a", "b"]
