"""onnxruntime's own quantized test graphs: imported or refused by name, and units agree with the runtime."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest

from hexqdq.errors import ModelError
from hexqdq.import_.pipeline import import_model
from hexqdq.import_.product import ImportedModel
from hexqdq.partition.pipeline import partition
from hexqdq.partition.product import NpuPart, PartitionedModel
from hexqdq.quantize.pipeline import already_quantized
from hexqdq.target import find_target
from tests.partition.execute import run_parts, unit_differences

UNREADABLE = (
    "attention_past_state",  # shapes that contradict each other
    "conv_qdq_external_ini",  # data in a file that the archive lacks
    "custom_op_local_function",  # ops of unknown types
    "dynamic_quantize_matmul",
    "matmul_integer_to_float",
    "matmulnbits",
    "bfloat16",
    "float16",
    "shared_initializers_broadcast2",  # a boolean input
)


def _imported(data: bytes) -> ImportedModel:
    """The model with 8 for every dynamic size, 1 for a leading one."""
    model = onnx.ModelProto.FromString(data)
    constants = {tensor.name for tensor in model.graph.initializer}
    shapes = {}
    for value in model.graph.input:
        sizes = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        if value.name not in constants and 0 in sizes:
            shapes[value.name] = tuple(size or (8 if axis else 1) for axis, size in enumerate(sizes))
    return import_model(data, shapes)


def _check(imported: ImportedModel, parts: PartitionedModel) -> int:
    """How many units there are; each is within a step of onnxruntime."""
    rng = np.random.default_rng(0)
    feeds = {
        tensor.name: rng.integers(0, 100, tensor.shape).astype(tensor.dtype.numpy)
        if tensor.dtype.is_integer
        else rng.normal(size=tensor.shape).astype(np.float32)
        for tensor in parts.inputs
    }
    assert set(run_parts(parts, feeds)) == {tensor.name for tensor in parts.outputs}
    for unit, steps in unit_differences(imported.model, parts, feeds).items():
        assert steps.max() <= 1, unit
    return sum(len(part.graph.units) for part in parts.parts if isinstance(part, NpuPart))


def test_every_graph_runs_or_is_refused(shared: Path) -> None:
    path = shared / "models" / "onnxruntime_testdata_quant.zip"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    units = 0
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            try:
                imported = _imported(archive.read(name))
                parts = partition(already_quantized(imported), find_target("v73"))
            except ModelError as error:
                assert any(part in name for part in UNREADABLE), f"{name}: {error}"
                continue
            units += _check(imported, parts)
    assert units >= 60
