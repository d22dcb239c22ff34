"""Writes an ONNX model so that a reader finds either the old one or the whole new one."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

import onnx_ir as ir

from hexqdq.files import writing
from hexqdq.passes import INLINE_BYTES, weight_bytes
from hexqdq.quantize.product import QdqModel

_DIGITS = 12
"""Of the model's digest in the name of its data file."""


def save(qdq: QdqModel, path: str | Path, *, external: bool = False) -> Path:
    """Writes the model to ``path`` atomically and returns it; missing folders are made.

    ``external`` writes weights to ``NAME.DIGEST.data`` beside it, as weights over 2 GB always are: data of
    another content never replace those that a model in use reads. What earlier models of the name left is
    removed. Raises UsageError where the path cannot be written.
    """
    target = Path(path)
    with writing(target):
        _write(qdq, target, external)
    return target


def _write(qdq: QdqModel, target: Path, external: bool) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    external = external or weight_bytes(qdq.model) > INLINE_BYTES
    data_name = f"{target.name}.{qdq.digest[:_DIGITS]}.data" if external else None
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".hexqdq-") as folder:
        written = Path(folder) / target.name
        ir.save(qdq.model, written, external_data=data_name)
        for name in filter(None, (data_name, target.name)):  # the data first: a model never names what is not there
            if (Path(folder) / name).exists():
                _sync(Path(folder) / name)
                (Path(folder) / name).replace(target.parent / name)
    for old in _data_files(target):
        if old.name != data_name:
            old.unlink(missing_ok=True)


def _data_files(target: Path) -> list[Path]:
    """What models at ``target`` were given as their data."""
    pattern = re.compile(rf"{re.escape(target.name)}\.[0-9a-f]{{{_DIGITS}}}\.data")
    return [file for file in target.parent.iterdir() if pattern.fullmatch(file.name)]


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
