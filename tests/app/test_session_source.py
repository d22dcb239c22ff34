"""A session on a QDQ model: compiled once in a child process, then from the cache."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from hexqdq.app import session_source
from hexqdq.app.session import InferenceSession
from hexqdq.app.session_source import compile_in_child, is_model
from hexqdq.context import file
from hexqdq.errors import CompileError, ContextError, ExecutorError, HexqdqError, ModelError, UsageError
from tests.context.samples import abs_part, conv_model, sample_input

MODEL = abs_part().model


class Compiler:
    """Stands in for the child process: writes the sample context and counts."""

    def __init__(self) -> None:
        self.calls: list[tuple[bytes, str]] = []

    def __call__(self, model: Path, output: Path, target: str) -> None:
        self.calls.append((model.read_bytes(), target))
        file.write(conv_model(), output)


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Compiler:
    monkeypatch.setenv("HEXQDQ_CACHE", str(tmp_path / "cache"))
    stand_in = Compiler()
    monkeypatch.setattr(session_source, "compile_in_child", stand_in)
    return stand_in


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    path.write_bytes(MODEL)
    return path


def open_session(source: Path | bytes, **options: object) -> InferenceSession:
    return InferenceSession(source, provider_options=[{"executor": "reference", **options}])


def test_what_is_a_model_and_what_is_not(tmp_path: Path) -> None:
    assert is_model(Path("a.onnx")) and is_model(MODEL)
    assert is_model(onnx.helper.make_model(onnx.GraphProto(), producer_name="p").SerializeToString())
    for source in (Path("a.ctx"), b"", b"\x08", b"\x89HXQCTX\n", file.to_bytes(conv_model())):
        assert not is_model(source)


def test_a_model_is_compiled_once(compiler: Compiler, model: Path) -> None:
    for source in (model, model, MODEL):
        assert open_session(source).run(None, {"x": sample_input()})[0].dtype == np.float32
    assert compiler.calls == [(MODEL, "hexagon-v73")]


def test_another_target_or_folder_is_another_entry(compiler: Compiler, model: Path, tmp_path: Path) -> None:
    open_session(model)
    open_session(model, cache_dir=str(tmp_path / "other"))
    assert [target for _, target in compiler.calls] == ["hexagon-v73"] * 2
    assert len(list((tmp_path / "other" / "contexts").glob("*.ctx"))) == 1
    with pytest.raises(ContextError, match="expected hexagon-v75"):
        open_session(model, target="v75")
    assert {target for _, target in compiler.calls[2:]} == {"hexagon-v75"}


def test_a_damaged_entry_is_compiled_again(compiler: Compiler, model: Path, tmp_path: Path) -> None:
    open_session(model)
    (entry,) = (tmp_path / "cache" / "contexts").glob("*.ctx")
    entry.write_bytes(entry.read_bytes()[:5000])
    open_session(model)
    assert len(compiler.calls) == 2


def test_a_missing_model_is_told(compiler: Compiler, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is not a file"):
        open_session(tmp_path / "absent.onnx")


@pytest.mark.parametrize(
    ("code", "words", "kind", "said", "hint"),
    [
        (1, "error: m: no Q/DQ\n  next: quantize it", ModelError, "does not compile: m: no Q/DQ", "quantize it"),
        (2, "error: --target: unknown", UsageError, "unknown", "by hand: hexqdq compile"),
        (3, "error: a fault", CompileError, "a fault", "by hand"),
        (-9, "", ExecutorError, "ended by SIGKILL", "memory"),
    ],
)
def test_the_childs_words_and_exit_code_become_the_error(
    code: int,
    words: str,
    kind: type[HexqdqError],
    said: str,
    hint: str,
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    child = tmp_path / "child"
    end = f"kill {code} $$" if code < 0 else f"exit {code}"
    child.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{words}\nEND\n{end}\n")
    child.chmod(child.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(sys, "executable", str(child))
    with pytest.raises(kind, match=said) as caught:
        compile_in_child(model, tmp_path / "out.ctx", "hexagon-v73")
    assert type(caught.value) is kind
    assert hint in caught.value.hint


def test_the_child_gets_this_package_and_the_arguments(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = tmp_path / "child"
    child.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/arguments\necho "$PYTHONPATH" > {tmp_path}/paths\n')
    child.chmod(child.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(sys, "executable", str(child))
    compile_in_child(model, tmp_path / "out.ctx", "hexagon-v75")
    arguments = (tmp_path / "arguments").read_text().split()
    assert arguments == f"-m hexqdq compile {model} -o {tmp_path}/out.ctx --target hexagon-v75 --quiet".split()
    package = Path(session_source.__file__).parents[2]
    assert (tmp_path / "paths").read_text().split(os.pathsep)[0].strip() == str(package)
