"""The same model and samples give the same bytes on any number of threads, in any order, with any hash seed."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest

from hexqdq.import_.pipeline import import_model
from hexqdq.import_.product import ImportedModel
from hexqdq.quantize.calibration import calibrate as calibration
from hexqdq.quantize.calibration.session import WatchedSession
from hexqdq.quantize.observers import METHODS
from hexqdq.quantize.pipeline import quantize
from hexqdq.quantize.recipe import Recipe
from tests.import_.models import parse
from tests.quantize.graphs import normal, samples

TEXT = """m (float[1,8,2000] x) => (float[1,250,64] y, float[1,250,250] p) {
    c = Conv<strides = [8], pads = [252, 251]>(x, wide, shift)
    r = Relu(c)
    t = Transpose<perm = [0, 2, 1]>(r)
    q = MatMul(t, w)
    k = Transpose<perm = [0, 2, 1]>(q)
    s = MatMul(q, k)
    n = Mul(s, small)
    p = Softmax(n)
    h = MatMul(p, q)
    y = Add(h, t)
}"""
"""A wide convolution, which onnxruntime sums in pieces by its threads, and attention."""


def network() -> ImportedModel:
    small = np.array(0.02, np.float32)
    wide, shift, w = normal(64, 8, 504, seed=1, scale=0.02), normal(64, seed=2), normal(64, 64, seed=3)
    return import_model(parse(TEXT, small=small, wide=wide, shift=shift, w=w))


def written(recipe: Recipe | None = None) -> str:
    """The digest of the bytes of the default result."""
    imported = network()
    qdq = quantize(imported, samples(imported, 6), recipe)
    return hashlib.sha256(repr(sorted(qdq.ranges.items())).encode() + qdq.digest.encode()).hexdigest()


@pytest.mark.parametrize("method", METHODS)
def test_samples_in_parallel_or_one_by_one(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = set()
    for threads in (1, 2, 5):
        monkeypatch.setattr(calibration, "threads_for", lambda _, threads=threads: threads)
        found.add(written(Recipe(method=method, mixed=False)))
    assert len(found) == 1


@pytest.mark.parametrize("method", METHODS)
def test_order_of_the_samples(method: str) -> None:
    imported = network()
    feeds = samples(imported, 6)
    recipe = Recipe(method=method)
    names = [str(value.name) for value in imported.model.graph.outputs]
    one, other = (
        calibration.calibrate(imported.model, names, order, method, None, recipe.knobs())
        for order in (feeds, feeds[::-1])
    )
    assert one == other


def test_a_run_has_one_thread_on_any_machine() -> None:
    """With three threads or more onnxruntime gives other last bits for this network."""
    imported = network()
    (name,) = (str(node.outputs[0].name) for node in imported.model.graph if node.op_type == "Conv")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    watched = imported.model.clone()
    watched.graph.outputs.extend(v for node in watched.graph for v in node.outputs if v.name == name)
    plain = onnxruntime.InferenceSession(ir.to_proto(watched).SerializeToString(), options)
    (feeds,) = samples(imported, 1)
    session = WatchedSession(imported.model, [name])
    assert session.threads == 1
    np.testing.assert_array_equal(session.run(feeds)[0], plain.run([name], feeds)[0])


SETTINGS = (
    {"cores": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "1"},
    {"cores": "64", "OMP_NUM_THREADS": "4", "OPENBLAS_NUM_THREADS": "4", "PYTHONHASHSEED": "2"},
)


@pytest.mark.slow
def test_processes_with_other_threads_and_hash_seeds(root: Path) -> None:
    found = set()
    for setting in SETTINGS:
        code = (
            "import os, sys; cores = int(sys.argv[1])\n"
            "if hasattr(os, 'sched_setaffinity'):\n"
            "    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])\n"
            "from tests.quantize.test_determinism import written; print(written())"
        )
        environment = {**os.environ, **{name: value for name, value in setting.items() if name != "cores"}}
        command = [sys.executable, "-W", "ignore", "-c", code, setting["cores"]]
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=True)
        found.add(done.stdout.strip())
    assert len(found) == 1
