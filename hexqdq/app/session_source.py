"""From what a session is given to a context: a file, bytes, or a QDQ model compiled once into the cache."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from hexqdq.context import cache
from hexqdq.context.cache import CacheEntry
from hexqdq.context.container import MAGIC
from hexqdq.errors import CompileError, ExecutorError, HexqdqError, ModelError, UsageError
from hexqdq.target import DEFAULT_TARGET

ONNX_SUFFIX = ".onnx"
ERRORS_BY_EXIT_CODE: dict[int, type[HexqdqError]] = {1: ModelError, 2: UsageError}


def is_model(source: Path | bytes) -> bool:
    """Whether to compile it: an ``.onnx`` file, or bytes that begin as an ONNX model does and a context does not."""
    if isinstance(source, Path):
        return source.suffix == ONNX_SUFFIX
    return not source.startswith(MAGIC) and _begins_as_onnx(source)


def _begins_as_onnx(data: bytes) -> bool:
    """Field 1 of ModelProto, ``ir_version``, a small number, and then the tag of another of its fields."""
    tags = {number << 3 | 2 for number in (2, 3, 4, 6, 7, 8, 14, 20)} | {5 << 3}
    return len(data) > 2 and data[0] == 1 << 3 and 0 < data[1] < 64 and data[2] in tags


class CachedModel:
    """A QDQ model and its place in the cache."""

    def __init__(self, model: Path | bytes, target: str | None, cache_dir: Path | None) -> None:
        if isinstance(model, Path) and not model.is_file():
            raise ModelError(str(model), "is not a file; expected a QDQ model in ONNX", "check the path")
        self._model = model
        self._target = target or DEFAULT_TARGET
        self._entry = CacheEntry(cache.cache_folder(cache_dir), cache.model_key(model, self._target))

    def context_path(self) -> Path:
        """The compiled context, made now if the cache has none."""
        return self._entry.fill(self._compile)

    def discard(self) -> None:
        """Forgets the cached context, as when it is found damaged."""
        self._entry.discard()

    def _compile(self, output: Path) -> None:
        if isinstance(self._model, Path):
            compile_in_child(self._model, output, self._target)
            return
        with tempfile.TemporaryDirectory(prefix="hexqdq-") as folder:
            path = Path(folder) / f"model{ONNX_SUFFIX}"
            path.write_bytes(self._model)
            compile_in_child(path, output, self._target)


def compile_in_child(model: Path, output: Path, target: str) -> None:
    """Runs ``hexqdq compile`` in a process of its own, so that this one never holds the tool-chain."""
    command = [sys.executable, "-m", "hexqdq", "compile", str(model), "-o", str(output), "--target", target, "--quiet"]
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode != 0:
        if done.returncode < 0:
            ended = f"the process that compiles it was ended by {signal.Signals(-done.returncode).name}"
            raise ExecutorError(
                str(model), f"{ended}; expected it to finish", "see whether memory ran out; run it again"
            )
        kind = ERRORS_BY_EXIT_CODE.get(done.returncode, CompileError)
        told = done.stderr.strip().removeprefix("error: ").removeprefix(f"{model}: ")
        words, _, hint = told.partition("\n  next: ")
        by_hand = f"repeat it by hand: hexqdq compile {model} --target {target}"
        raise kind(str(model), f"does not compile: {words or f'exit status {done.returncode}'}", hint or by_hand)
