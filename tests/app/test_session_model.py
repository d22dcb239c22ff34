"""A session on a QDQ model by the real chain: compiled in a child, cached, equal on every executor."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from hexqdq.app.convert import quantize_model
from hexqdq.app.session import InferenceSession

IMAGES = 32


@pytest.fixture(scope="module")
def model(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("digits") / "digits.qdq.onnx"
    quantize_model(root / "models/digits/digits.onnx", root / "models/digits/digits_calib.npz", output=path)
    return path


@pytest.fixture(scope="module")
def images(root: Path) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    values: np.ndarray[tuple[int, ...], np.dtype[np.float32]]
    with np.load(root / "models/digits/digits_heldout.npz") as data:
        values = data["x"][:IMAGES].astype(np.float32)
    return values


@pytest.fixture(scope="module")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def logits(session: InferenceSession, images: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> list[bytes]:
    (name,) = [value.name for value in session.get_inputs()]
    return [session.run(None, {name: image[None]})[0].tobytes() for image in images]


def test_every_executor_gives_the_same_bytes(
    model: Path, images: np.ndarray[tuple[int, ...], np.dtype[np.float32]], cache_dir: Path
) -> None:
    names = ["reference", "host", *(["qemu"] if shutil.which("qemu-hexagon") else [])]
    answers = {}
    for name in names:
        session = InferenceSession(model, provider_options=[{"executor": name, "cache_dir": str(cache_dir)}])
        answers[name] = logits(session, images)
        assert bool(session.last_counters()) == (name == "qemu")
        session.close()
    assert all(answers[name] == answers["reference"] for name in names)
    assert len(list(cache_dir.rglob("*.ctx"))) == 1


WITHOUT_TOOLS = """
    import sys
    for name in ("mlir", "llvmlite", "ziglang", "onnx", "onnx_ir", "onnxscript", "onnxruntime"):
        sys.modules[name] = None
    import numpy as np
    from hexqdq import InferenceSession
    session = InferenceSession(sys.argv[1])
    (name,) = [value.name for value in session.get_inputs()]
    np.save(sys.argv[3], np.concatenate([session.run(None, {name: x[None]})[0] for x in np.load(sys.argv[2])]))
"""


def test_the_cached_context_runs_without_the_tool_chain(
    model: Path, images: np.ndarray[tuple[int, ...], np.dtype[np.float32]], cache_dir: Path, tmp_path: Path
) -> None:
    session = InferenceSession(model, provider_options=[{"cache_dir": str(cache_dir)}])
    (context,) = cache_dir.rglob("*.ctx")
    np.save(tmp_path / "x.npy", images)
    arguments = [str(context), str(tmp_path / "x.npy"), str(tmp_path / "y.npy")]
    command = [sys.executable, "-c", textwrap.dedent(WITHOUT_TOOLS), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [row[None].tobytes() for row in np.load(tmp_path / "y.npy")] == logits(session, images)
