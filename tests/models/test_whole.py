"""Digits and ResNet-8, whole: every executor and the TOSA reference model give the same bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.models.whole import Array, Built, build, differing_from_tosa, onnxruntime_outputs, outputs

SAMPLED, WHOLE = 16, 200


@pytest.fixture(scope="module")
def cifar(shared: Path) -> tuple[Array, Array]:
    """1000 test pictures [n,32,32,3] u8 with their labels."""
    with np.load(shared / "data" / "cifar10_test1000.npz") as data:
        return data["x"], data["y"]


@pytest.fixture(scope="module")
def resnet_qdq(shared: Path) -> Built:
    return build(shared / "models" / "resnet8_cifar_qdq_s8.onnx", {"input_1_int8": (1, 32, 32, 3)})


@pytest.fixture(scope="module")
def resnet_ours(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    calibration = tmp_path_factory.mktemp("calibration") / "cifar.npz"
    with np.load(shared / "data" / "cifar10_calib200.npz") as data:
        np.savez(calibration, input_1=data["x"][:64].astype(np.float32))
    return build(shared / "models" / "resnet8_cifar_fp32.onnx", {"input_1": (1, 32, 32, 3)}, calibration)


@pytest.fixture(scope="module")
def digits(root: Path) -> Built:
    folder = root / "models" / "digits"
    return build(folder / "digits.onnx", {}, folder / "digits_calib.npz")


def as_s8(pictures: Array) -> list[Array]:
    return [(picture[None].astype(np.int16) - 128).astype(np.int8) for picture in pictures]


def as_f32(pictures: Array) -> list[Array]:
    return [picture[None].astype(np.float32) for picture in pictures]


def equal_everywhere(built: Built, samples: list[Array]) -> Array:
    """The outputs, after comparing the bits of every executor and of the TOSA reference model."""
    expected = outputs(built, "reference", samples)
    for executor in ("host", "qemu"):
        assert outputs(built, executor, samples).tobytes() == expected.tobytes(), executor
    assert differing_from_tosa(built, samples[:4]) == 0
    return expected


def test_digits(digits: Built, root: Path, qemu: str, run_all: bool) -> None:
    with np.load(root / "models" / "digits" / "digits_heldout.npz") as held_out:
        samples = list(held_out["x"][: WHOLE if run_all else SAMPLED, None])
    equal_everywhere(digits, samples)


def test_resnet_as_it_came(resnet_qdq: Built, cifar: tuple[Array, Array], qemu: str, run_all: bool) -> None:
    samples = as_s8(cifar[0][: WHOLE if run_all else SAMPLED])
    found = equal_everywhere(resnet_qdq, samples)
    theirs = onnxruntime_outputs(resnet_qdq.qdq, samples)
    assert np.mean(found.argmax(-1) == theirs.argmax(-1)) >= 0.9


def test_resnet_quantized_by_us(resnet_ours: Built, cifar: tuple[Array, Array], qemu: str, run_all: bool) -> None:
    equal_everywhere(resnet_ours, as_f32(cifar[0][: WHOLE if run_all else SAMPLED]))


def test_resnet_score_as_it_came(resnet_qdq: Built, cifar: tuple[Array, Array]) -> None:
    """75.0 % in onnxruntime."""
    found = outputs(resnet_qdq, "host", as_s8(cifar[0]))
    assert np.mean(found.argmax(-1) == cifar[1]) >= 0.745


def test_resnet_score_quantized_by_us(resnet_ours: Built, cifar: tuple[Array, Array]) -> None:
    """75.1 % as a float model."""
    found = outputs(resnet_ours, "host", as_f32(cifar[0]))
    assert np.mean(found.argmax(-1) == cifar[1]) >= 0.746
