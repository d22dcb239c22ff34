"""The cache: its keys, one maker among many processes, and what a kill leaves."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path

import numpy as np
import onnx
import pytest

from hexqdq.context import cache
from hexqdq.context.cache import CacheEntry, cache_folder, external_files, model_key
from hexqdq.errors import ContextError


def test_the_folder_is_chosen_then_set_then_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEXQDQ_CACHE", str(tmp_path))
    assert cache_folder(Path("/chosen")) == Path("/chosen")
    assert cache_folder() == tmp_path
    monkeypatch.setenv("HEXQDQ_CACHE", "")
    assert cache_folder().name == "hexqdq"


def test_the_key_follows_content_target_and_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, copy, other = (tmp_path / name for name in ("a.onnx", "b.onnx", "c.onnx"))
    model.write_bytes(b"one")
    copy.write_bytes(b"one")
    other.write_bytes(b"two")
    key = model_key(model, "hexagon-v73")
    assert key == model_key(copy, "hexagon-v73") == model_key(b"one", "hexagon-v73")
    assert key not in (model_key(other, "hexagon-v73"), model_key(model, "hexagon-v75"))
    monkeypatch.setattr(cache, "package_versions", lambda: {"llvmlite": "99"})
    assert key != model_key(model, "hexagon-v73")


def test_the_key_follows_external_data(tmp_path: Path) -> None:
    weights = onnx.numpy_helper.from_array(np.arange(1000, dtype=np.float32), "w")
    graph = onnx.helper.make_graph([], "g", [], [], [weights])
    path = tmp_path / "model.onnx"
    onnx.save(onnx.helper.make_model(graph), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert external_files(path) == [tmp_path / "weights.bin"]
    key = model_key(path, "v73")
    data = bytearray((tmp_path / "weights.bin").read_bytes())
    data[5] ^= 1
    (tmp_path / "weights.bin").write_bytes(data)
    assert model_key(path, "v73") != key


def make_slowly(output: Path) -> None:
    with (output.parent / "made").open("a") as log:
        log.write("x")
    output.write_bytes(b"half")
    time.sleep(0.3)
    output.write_bytes(b"whole")


def fill(folder: Path) -> None:
    assert CacheEntry(folder, "key").fill(make_slowly).read_bytes() == b"whole"


def test_of_many_processes_one_makes_it(tmp_path: Path) -> None:
    processes = [multiprocessing.get_context("spawn").Process(target=fill, args=(tmp_path,)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    assert (tmp_path / "contexts" / "made").read_text() == "x"


def test_what_a_killed_process_left_is_cleared(tmp_path: Path) -> None:
    contexts = tmp_path / "contexts"
    contexts.mkdir()
    (contexts / ".key.1234.ctx").write_bytes(b"half")
    (contexts / "..key.1234.ctx.a1b2").write_bytes(b"half")
    (contexts / "key.lock").touch()
    fill(tmp_path)
    assert sorted(entry.name for entry in contexts.glob("*key*")) in (["key.ctx"], ["key.ctx", "key.lock"])


def test_a_maker_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail(output: Path) -> None:
        output.write_bytes(b"half")
        raise ValueError("no")

    entry = CacheEntry(tmp_path, "key")
    with pytest.raises(ValueError, match="no"):
        entry.fill(fail)
    assert [path.suffix for path in (tmp_path / "contexts").iterdir()] in ([], [".lock"])
    fill(tmp_path)


def test_a_folder_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ContextError, match="cannot be used as cache") as caught:
        CacheEntry(tmp_path / "file", "key").fill(lambda output: None)
    assert "HEXQDQ_CACHE" in caught.value.hint


def test_the_process_id_is_in_the_temporary_name(tmp_path: Path) -> None:
    names: list[str] = []

    def note(output: Path) -> None:
        names.append(output.name)
        output.write_bytes(b"")

    CacheEntry(tmp_path, "key").fill(note)
    assert names == [f".key.{os.getpid()}.ctx"]
