"""Every kind of bad input ends in a message with a next step, exit code 1 or 2, and nothing half-written."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from hexqdq.app.convert import compile_to_file
from tests.cli.test_cli import Captured, run

Place = Callable[[Path], Path]


def relu_model(path: Path, shape: list[int | str]) -> Path:
    """A float Relu from x to y."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"], "relu")], "g", values[:1], values[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def requantizing_model(path: Path, before: float, after: float) -> Path:
    """Q -> DQ -> Relu -> Q -> DQ with two scales."""
    constants = [
        numpy_helper.from_array(np.array(value, dtype), name)
        for name, value, dtype in (("s", before, np.float32), ("t", after, np.float32), ("z", 0, np.uint8))
    ]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["a"], "q0"),
        helper.make_node("DequantizeLinear", ["a", "s", "z"], ["b"], "d0"),
        helper.make_node("Relu", ["b"], ["c"], "relu"),
        helper.make_node("QuantizeLinear", ["c", "t", "z"], ["d"], "q1"),
        helper.make_node("DequantizeLinear", ["d", "t", "z"], ["y"], "d1"),
    ]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("context")
    path = folder / "good.ctx"
    compile_to_file(requantizing_model(folder / "m.onnx", 0.1, 0.05), path)
    return path


def told(captured: Captured, *words: str) -> None:
    """The message names what it must, says what to do next, and is no traceback."""
    text = captured.readouterr().err
    assert "Traceback" not in text
    assert "next:" in text, text
    for word in words:
        assert word in text, text


MODELS: dict[str, Place] = {
    "missing": lambda folder: folder / "none.onnx",
    "folder": lambda folder: folder,
    "text": lambda folder: written(folder / "text.onnx", b"this is no model"),
    "empty": lambda folder: written(folder / "empty.onnx", b""),
    "truncated": lambda folder: written(folder / "cut.onnx", relu_model(folder / "m.onnx", [1, 4]).read_bytes()[:-20]),
}


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("fault", MODELS)
@pytest.mark.parametrize("command", ["quantize", "compile", "explain"])
def test_models(command: str, fault: str, tmp_path: Path, capsys: Captured) -> None:
    model = MODELS[fault](tmp_path)
    for folder in ("calib", "out"):
        (tmp_path / folder).mkdir()
    np.savez(tmp_path / "calib" / "0.npz", x=np.zeros((1, 4), np.float32))
    extra = ["--calib", tmp_path / "calib"] if command == "quantize" else []
    output = [] if command == "explain" else ["-o", tmp_path / "out" / "made"]
    assert run(command, model, *extra, *output) in (1, 2)
    told(capsys, model.name)
    assert not list((tmp_path / "out").iterdir())


SAMPLES: dict[str, tuple[dict[str, object], tuple[str, ...]]] = {
    "wrong_name": ({"z": np.zeros((1, 4), np.float32)}, ("'x'",)),
    "wrong_shape": ({"x": np.zeros((1, 5), np.float32)}, ("(1, 5)", "(1, 4)")),
    "wrong_type": ({"x": np.zeros((1, 4), np.int32)}, ("int32", "float32")),
    "nan": ({"x": np.full((1, 4), np.nan, np.float32)}, ("NaN",)),
    "infinite": ({"x": np.full((1, 4), np.inf, np.float32)}, ("inf",)),
    "nothing": ({}, ()),
}


@pytest.mark.parametrize("fault", SAMPLES)
def test_calibration(fault: str, tmp_path: Path, capsys: Captured) -> None:
    model = relu_model(tmp_path / "m.onnx", [1, 4])
    sample, words = SAMPLES[fault]
    (tmp_path / "calib").mkdir()
    if sample:
        np.savez(tmp_path / "calib" / "0.npz", **sample)  # type: ignore[arg-type]
    assert run("quantize", model, "--calib", tmp_path / "calib", "-o", tmp_path / "made.onnx") == 1
    told(capsys, *words)
    assert not (tmp_path / "made.onnx").exists()


def test_a_dynamic_dimension(tmp_path: Path, capsys: Captured) -> None:
    model = relu_model(tmp_path / "m.onnx", ["batch", 4])
    assert run("explain", model) == 1
    told(capsys, "'x'", "--input-shape")


@pytest.mark.parametrize(
    "arguments",
    [
        ("compile", "m.onnx", "--no-such-option"),
        ("compile", "m.onnx", "--target", "hexagon-v1"),
        ("run", "m.ctx", "--executor", "gpu"),
        ("quantize", "m.onnx", "--calib", "c", "--method", "magic"),
        ("no-such-command",),
    ],
)
def test_unknown_words_are_usage(arguments: tuple[str, ...], tmp_path: Path, capsys: Captured) -> None:
    assert run(*arguments) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_scale_outside_the_domain_of_rescale(tmp_path: Path, capsys: Captured) -> None:
    model = requantizing_model(tmp_path / "m.onnx", 1.0, 1e-9)
    assert run("compile", model, "-o", tmp_path / "made.ctx") == 1
    told(capsys, "hexqdq explain")
    assert not (tmp_path / "made.ctx").exists()
    assert run("explain", model) == 0
    assert "RESCALE shift of 2 to 62" in " ".join(capsys.readouterr().out.split())


def damaged(kind: str, whole: bytes) -> bytes:
    """A context's bytes with one fault."""
    if kind == "truncated":
        return whole[: len(whole) // 2]
    if kind == "foreign":
        return b"PK\x03\x04" + bytes(5000)
    if kind == "empty":
        return b""
    flipped = bytearray(whole)
    for place in [200] if kind == "header_flipped" else range(4096, len(whole), 4096):
        flipped[place] ^= 1
    return bytes(flipped)


@pytest.mark.parametrize("kind", ["truncated", "foreign", "empty", "header_flipped", "pages_flipped"])
@pytest.mark.parametrize("command", ["run", "inspect"])
def test_contexts(command: str, kind: str, context: Path, tmp_path: Path, capsys: Captured) -> None:
    bad = written(tmp_path / "bad.ctx", damaged(kind, context.read_bytes()))
    np.save(tmp_path / "x.npy", np.zeros((1, 4), np.float32))
    extra = ["--input", f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "out.npz"] if command == "run" else []
    assert run(command, bad, *extra) == 1
    told(capsys, "bad.ctx", "expected")
    assert not (tmp_path / "out.npz").exists()


@pytest.mark.parametrize("place", ["/proc/made.ctx", "file/made.ctx"])
def test_an_output_that_cannot_be_written(place: str, tmp_path: Path, capsys: Captured) -> None:
    model = requantizing_model(tmp_path / "m.onnx", 0.1, 0.05)
    (tmp_path / "file").write_text("no folder")
    assert run("compile", model, "-o", tmp_path / place) == 1
    told(capsys, "made.ctx")
    assert (tmp_path / "file").read_text() == "no folder"


LIMITED = """
import resource, sys
from hexqdq import cli
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
cli.main(["quantize", sys.argv[1], "--calib", sys.argv[2], "-o", sys.argv[3]])
"""


def test_a_disk_without_room(tmp_path: Path, root: Path) -> None:
    """A limit on file sizes stands for it: the system refuses to write on in the middle."""
    digits = root / "models" / "digits"
    old = written(tmp_path / "old.onnx", b"what was there before")
    arguments = [str(digits / "digits.onnx"), str(digits / "digits_calib.npz"), str(old)]
    done = subprocess.run([sys.executable, "-c", LIMITED, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode in (1, 2), done.stderr
    assert "Traceback" not in done.stderr and "next:" in done.stderr and os.strerror(errno.EFBIG) in done.stderr
    assert old.read_bytes() == b"what was there before"
    assert list(tmp_path.iterdir()) == [old]


PRESENT = {
    "compile": ("compile", "{model}", "-o", "{place}"),
    "quantize": ("quantize", "{float}", "--calib", "{calib}", "-o", "{place}"),
    "ranges": ("quantize", "{float}", "--calib", "{calib}", "-o", "{made}", "--ranges", "{place}"),
    "run": ("run", "{context}", "--input", "x={feed}", "-o", "{place}"),
}


@pytest.fixture
def given(context: Path, tmp_path: Path) -> dict[str, Path]:
    """Paths of good inputs by what they are."""
    np.savez(tmp_path / "calib.npz", x=np.ones((3, 4), np.float32))
    np.save(tmp_path / "feed.npy", np.zeros((1, 4), np.float32))
    return {
        "model": context.with_name("m.onnx"),
        "context": context,
        "float": relu_model(tmp_path / "float.onnx", [1, 4]),
        "calib": tmp_path / "calib.npz",
        "feed": tmp_path / "feed.npy",
        "made": tmp_path / "made.onnx",
    }


def filled(form: tuple[str, ...], given: dict[str, Path]) -> list[str]:
    return [part.format(**given) for part in form]


@pytest.mark.parametrize("command", ["compile", "quantize", "run"])
@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_only_files_are_replaced(
    command: str, kind: str, given: dict[str, Path], tmp_path: Path, capsys: Captured
) -> None:
    place = tmp_path / "place.npz"
    place.mkdir() if kind == "folder" else os.mkfifo(place)
    assert run(*filled(PRESENT[command], given | {"place": place})) in (1, 2)
    told(capsys, "place.npz", "expected the name of a file")
    assert place.is_dir() if kind == "folder" else place.is_fifo()


@pytest.mark.parametrize("command", PRESENT)
def test_a_disk_that_fills_leaves_nothing(
    command: str, given: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    folder = tmp_path / "out"
    folder.mkdir()
    assert run(*filled(PRESENT[command], given | {"place": folder / "o.npz"})) in (1, 2)
    told(capsys, "No space left on device")
    assert not list(folder.iterdir())


@pytest.mark.parametrize("place", ["/proc/dump", "/dev/null/dump", "{feed}"])
@pytest.mark.parametrize("command", ["compile", "quantize"])
def test_a_dump_that_cannot_be_written(
    command: str, place: str, given: dict[str, Path], tmp_path: Path, capsys: Captured
) -> None:
    made = tmp_path / "made"
    dump = place.format(**given)
    assert run(*filled(PRESENT[command], given | {"place": made}), "--dump", dump) == 2
    told(capsys, f"--dump {dump}")
    assert not made.exists()


RUNS = {
    "shape": (("--input", "x={other}"), ("'x'", "(1, 5)", "(1, 4)")),
    "twice": (("--input", "x={feed}", "--input", "x={feed}"), ("--input", "twice")),
    "folder": (("--input", "x={folder}"), ("'x'", "cannot be read")),
    "no array": (("--input", "x={context}"), ("'x'", "numpy.save")),
    "no such input": (("--input", "z={feed}"), ("'z'", "x")),
}


@pytest.mark.parametrize("fault", RUNS)
def test_feeds(fault: str, given: dict[str, Path], tmp_path: Path, capsys: Captured) -> None:
    arguments, words = RUNS[fault]
    np.save(tmp_path / "other.npy", np.zeros((1, 5), np.float32))
    places = given | {"other": tmp_path / "other.npy", "folder": tmp_path}
    assert run("run", given["context"], *filled(arguments, places)) in (1, 2)
    told(capsys, *words)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--calib", ""),
        ("--calib", "/dev/null"),
        ("--calib", "sys:exit"),
        ("--calib", "os:getcwd"),
        ("--calib", "no_such_module:feeds"),
        ("--mean", "0.5"),
        ("--recipe", "{folder}"),
        ("--recipe", "{context}"),
        ("--ranges", "{context}"),
        ("--input-shape", "x:1x5"),
        ("--input-shape", "z:1x4"),
    ],
)
def test_values_of_options(option: str, value: str, given: dict[str, Path], tmp_path: Path, capsys: Captured) -> None:
    text = value.format(**given, folder=tmp_path)
    calib = [] if option == "--calib" else ["--calib", str(given["calib"])]
    assert run("quantize", given["float"], "-o", given["made"], option, text, *calib) in (1, 2)
    told(capsys)
    assert not given["made"].exists()


def test_a_place_that_cannot_be_written_is_told_before_the_work(tmp_path: Path, capsys: Captured) -> None:
    model = requantizing_model(tmp_path / "m.onnx", 0.1, 0.05)
    missing, feed = tmp_path / "no" / "such", tmp_path / "x.npy"
    np.save(feed, np.zeros((1, 4), np.float32))
    places = (
        ("compile", str(model), "-o", str(missing / "m.ctx")),
        ("compile", str(model), "-o", str(tmp_path / "m.ctx"), "--dump", str(feed)),
        ("quantize", str(relu_model(tmp_path / "f.onnx", [1, 4])), "--calib", str(feed), "-o", str(missing / "q.onnx")),
        ("run", str(model), "--input", f"x={feed}", "-o", str(missing / "y.npz")),
    )
    before = sorted(tmp_path.iterdir())
    for arguments in places:
        assert run(*arguments) in (1, 2), arguments
        lines = capsys.readouterr().err.splitlines()
        assert lines[0].startswith("error: ") and "cannot be written" in lines[0]
    assert sorted(path for path in tmp_path.iterdir()) == sorted({*before, tmp_path / "f.onnx"})


def test_a_folder_in_place_of_a_model_is_told(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("compile", ".") == 1
    told(capsys, "is a folder", "ONNX")
