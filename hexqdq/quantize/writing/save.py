"""Writes an ONNX model so that a reader finds either the old file or the whole new one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import onnx_ir as ir

from hexqdq.files import writing
from hexqdq.quantize.product import QdqModel

_INLINE_BYTES = (1 << 31) - (1 << 24)
"""Protobuf ends at 2 GB; larger weights go to ``NAME.data`` beside the model."""


def save(qdq: QdqModel, path: str | Path, *, external: bool = False) -> Path:
    """Writes the model to ``path`` atomically and returns it; missing folders are made.

    ``external`` writes weights to ``NAME.data`` whatever their size. Raises UsageError where the path
    cannot be written.
    """
    target = Path(path)
    with writing(target):
        _write(qdq, target, external)
    return target


def _write(qdq: QdqModel, target: Path, external: bool) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    size = sum(v.const_value.nbytes for v in qdq.model.graph.initializers.values() if v.const_value is not None)
    data_name = f"{target.name}.data" if external or size > _INLINE_BYTES else None
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".hexqdq-") as folder:
        written = Path(folder) / target.name
        ir.save(qdq.model, written, external_data=data_name)
        for name in filter(None, (data_name, target.name)):
            _sync(Path(folder) / name)
            (Path(folder) / name).replace(target.parent / name)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
