"""Whole models: where they are cut, and that each unit agrees with onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hexqdq.import_.pipeline import import_model
from hexqdq.partition.pipeline import partition
from hexqdq.partition.product import NpuPart
from hexqdq.quantize.pipeline import already_quantized, quantize
from hexqdq.quantize.recipe import Recipe
from hexqdq.target import TARGETS, find_target
from tests.partition.execute import run_model, run_parts, unit_differences

RESNET = ("resnet8_cifar_qdq_s8.onnx", "input_1_int8", (1, 32, 32, 3))
QDQ_MODELS = (
    RESNET,
    ("kws_dscnn_qdq_s8.onnx", "input_1", (1, 49, 10, 1)),
    ("wakeword_1dconv_qdq_s8.onnx", "serving_default_input_1:0", (1, 30, 1, 40)),
    ("ad01_autoencoder_qdq_s8.onnx", "input_1", (1, 640)),
)


@pytest.mark.parametrize("file, name, shape", QDQ_MODELS)
def test_qdq_model_is_one_segment(shared: Path, file: str, name: str, shape: tuple[int, ...]) -> None:
    qdq = already_quantized(import_model(shared / "models" / file, {name: shape}))
    parts = partition(qdq, find_target("v73"))
    (part,) = parts.parts
    assert isinstance(part, NpuPart)
    feeds = {name: np.random.default_rng(1).integers(-128, 128, shape).astype(np.int8)}
    differing, count = 0, 0
    for unit, steps in unit_differences(qdq.model, parts, feeds).items():
        assert steps.max() <= 1, unit
        differing, count = differing + int((steps > 0).sum()), count + steps.size
    print(f"{file}: {differing} of {count} elements differ by one step")
    (expected,), (found,) = run_model(qdq.model, feeds).values(), run_parts(parts, feeds).values()
    assert expected.argmax() == found.argmax()


@pytest.mark.parametrize("target", [target.name for target in TARGETS])
def test_quantized_float_model_is_one_segment_with_float_edges(shared: Path, target: str) -> None:
    shape = (1, 32, 32, 3)
    imported = import_model(shared / "models" / "resnet8_cifar_fp32.onnx", {"input_1": shape})
    generator = np.random.default_rng(2)
    samples = [{"input_1": generator.uniform(0, 255, shape).astype(np.float32)} for _ in range(4)]
    parts = partition(quantize(imported, samples, Recipe.preset("a8w8")), find_target(target))
    (part,) = parts.parts
    assert isinstance(part, NpuPart)
    assert [edge.is_float for edge in (*part.inputs, *part.outputs)] == [True, True]
    assert all(decision.segment == 0 for decision in parts.decisions)


def test_macs_are_the_published_ones(shared: Path) -> None:
    file, name, shape = RESNET
    parts = partition(already_quantized(import_model(shared / "models" / file, {name: shape})), find_target("v73"))
    assert sum(decision.macs for decision in parts.decisions) == 12_501_632
