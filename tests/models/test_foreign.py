"""Small QDQ, QOperator, 4-bit, 16-bit and 8-bit float graphs that others wrote: each runs or is refused by name."""

from __future__ import annotations

import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest

from hexqdq.app.convert import compile_to_file
from hexqdq.app.session import InferenceSession
from hexqdq.context.file import read
from hexqdq.errors import HexqdqError
from tests.models.zoo import noise

ARCHIVE = "models/onnxruntime_testdata_quant.zip"
SAMPLED = 6
"""Every how many graphs are taken where not all are asked for."""
LEAST_RUN = 50
"""Of the 73 graphs; the others have types or shapes that are refused."""


def static_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Sizes for the dimensions that the inputs leave open: 1 for the first, else 8."""
    graph = onnx.load(path, load_external_data=False).graph
    constants = {tensor.name for tensor in graph.initializer}
    shapes = {}
    for value in graph.input:
        dims = value.type.tensor_type.shape.dim
        if value.name not in constants and any(dim.dim_value <= 0 for dim in dims):
            shapes[value.name] = tuple(dim.dim_value or (8 if place else 1) for place, dim in enumerate(dims))
    return shapes


def outcome(path: Path, context: Path) -> str:
    """``runs``, or ``refused`` with a message that says what is next."""
    try:
        compile_to_file(path, context, input_shapes=static_shapes(path), allow_cpu=True)
    except HexqdqError as error:
        assert error.exit_code in (1, 2), f"{path.name}: {error}"
        assert error.hint, f"{path.name}: {error}"
        return "refused"
    rng = np.random.default_rng(0)
    feeds = {tensor.name: noise(tensor, rng) for tensor in read(context).inputs}
    results = {
        executor: InferenceSession(context, provider_options=[{"executor": executor}]).run(None, feeds)
        for executor in ("reference", "host")
    }
    for found, expected in zip(results["host"], results["reference"], strict=True):
        assert np.asarray(found).tobytes() == np.asarray(expected).tobytes(), path.name
    return "runs"


def test_each_runs_or_is_refused(shared: Path, run_all: bool, tmp_path: Path) -> None:
    if not (shared / ARCHIVE).is_file():
        pytest.skip(f"{ARCHIVE} is absent")
    with zipfile.ZipFile(shared / ARCHIVE) as archive:
        archive.extractall(tmp_path)
    paths = sorted(tmp_path.rglob("*.onnx"))[:: 1 if run_all else SAMPLED]
    tally = Counter(outcome(path, tmp_path / "made.ctx") for path in paths)
    print(dict(tally))
    assert tally["runs"] >= (LEAST_RUN if run_all else 1)
