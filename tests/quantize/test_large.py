"""A model of more than 2 GB is quantized from its external data, in memory that is told."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from hexqdq.quantize.recipe import Recipe
from tests.quantize.graphs import normal

LAYERS, ROWS, COLUMNS = 12, 6144, 7680
WEIGHTS = 4 * LAYERS * ROWS * COLUMNS
DISK, MEMORY = 2 * WEIGHTS, 4 * WEIGHTS
"""What it takes in bytes: source, result and what lies between; the process at its peak."""


def large_model(folder: Path) -> Path:
    """Products with biases and rectifiers, whose weights lie in a file of 2.26 GB."""
    block = normal(61, 2 * COLUMNS, seed=1, scale=0.02)
    nodes, constants, value = [], [], "x"
    with (folder / "large.data").open("wb") as data:
        for layer in range(LAYERS):
            rows, columns = (ROWS, COLUMNS) if layer % 2 == 0 else (COLUMNS, ROWS)
            weights = TensorProto(name=f"w{layer}", data_type=TensorProto.FLOAT, dims=[rows, columns])
            weights.data_location = TensorProto.EXTERNAL
            place = {"location": "large.data", "offset": str(data.tell()), "length": str(4 * rows * columns)}
            weights.external_data.extend(onnx.StringStringEntryProto(key=k, value=v) for k, v in place.items())
            for row in range(rows):
                start = (row * 31 + layer) % COLUMNS
                data.write(block[row % 61, start : start + columns].tobytes())
            constants += [weights, numpy_helper.from_array(normal(columns, seed=layer), f"b{layer}")]
            if layer % 3 == 2:
                nodes.append(helper.make_node("Gemm", [value, f"w{layer}", f"b{layer}"], [f"h{layer}"]))
            else:
                nodes.append(helper.make_node("MatMul", [value, f"w{layer}"], [f"m{layer}"]))
                nodes.append(helper.make_node("Add", [f"m{layer}", f"b{layer}"], [f"h{layer}"]))
            value = f"r{layer}"
            nodes.append(helper.make_node("Relu", [f"h{layer}"], [value]))
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, ROWS]) for name in ("x", value))
    graph = helper.make_graph(nodes, "large", [x], [y], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "m.onnx")
    return folder / "m.onnx"


def require_room(folder: Path) -> None:
    if shutil.disk_usage(folder).free < DISK:
        pytest.skip(f"needs {DISK >> 30} GB of disk")
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if free < MEMORY:
        pytest.skip(f"needs {MEMORY >> 30} GB of memory")


def outputs(path: Path, x: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": x})[0])


PEAK = """
import subprocess, sys, resource
code = subprocess.call(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's memory counters")
def test_large_model_is_quantized(tmp_path: Path) -> None:
    require_room(tmp_path)
    source = large_model(tmp_path)
    (tmp_path / "calib").mkdir()
    for index in range(3):
        np.savez(tmp_path / "calib" / f"{index}.npz", x=normal(1, ROWS, seed=index))
    made = tmp_path / "m.qdq.onnx"
    repairs = {field.name: False for field in fields(Recipe) if field.default is True and field.name != "per_channel"}
    recipe = Recipe(**{**repairs, "bias_correct": True})  # type: ignore[arg-type]
    (tmp_path / "recipe.json").write_text(recipe.to_text())
    options = ["--recipe", tmp_path / "recipe.json", "--external-data", "-q"]
    command = [sys.executable, "-m", "hexqdq", "quantize", source, "--calib", tmp_path / "calib", "-o", made, *options]
    done = subprocess.run([sys.executable, "-c", PEAK, *map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) * 1024 < MEMORY
    (data,) = made.parent.glob("m.qdq.onnx.*.data")
    assert WEIGHTS // 4 <= data.stat().st_size < WEIGHTS // 3
    exact, found = (outputs(path, normal(1, ROWS, seed=0)) for path in (source, made))
    assert float((exact * found).sum() / np.linalg.norm(exact) / np.linalg.norm(found)) > 0.99
