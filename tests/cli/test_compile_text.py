"""``hexqdq compile model.mlir``: a function written by hand, and one that --dump wrote."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hexqdq import cli
from hexqdq.app.session import InferenceSession
from hexqdq.context.file import read

Captured = pytest.CaptureFixture[str]

TEXT = """
module {
  func.func @main(%x: tensor<1x4x4x3xi8> {tosa.tensor_name = "image"}) -> tensor<1x4x4x2xi8> {
    %w = "tosa.const"() {values = dense<[[[[1, 2, 3]]], [[[4, 5, 6]]]]> : tensor<2x1x1x3xi8>} : () -> tensor<2x1x1x3xi8>
    %b = "tosa.const"() {values = dense<[10, -20]> : tensor<2xi32>} : () -> tensor<2xi32>
    %z = "tosa.const"() {values = dense<0> : tensor<1xi8>} : () -> tensor<1xi8>
    %a = tosa.conv2d %x, %w, %b, %z, %z {acc_type = i32, dilation = array<i64: 1, 1>,
      pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>} : (tensor<1x4x4x3xi8>, tensor<2x1x1x3xi8>,
      tensor<2xi32>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x4x4x2xi32>
    %m = "tosa.const"() {values = dense<1073741824> : tensor<1xi32>} : () -> tensor<1xi32>
    %s = "tosa.const"() {values = dense<33> : tensor<1xi8>} : () -> tensor<1xi8>
    %zi = "tosa.const"() {values = dense<0> : tensor<1xi32>} : () -> tensor<1xi32>
    %r = tosa.rescale %a, %m, %s, %zi, %z {scale32 = true, rounding_mode = SINGLE_ROUND, per_channel = false,
      input_unsigned = false, output_unsigned = false} : (tensor<1x4x4x2xi32>, tensor<1xi32>, tensor<1xi8>,
      tensor<1xi32>, tensor<1xi8>) -> tensor<1x4x4x2xi8>
    return %r : tensor<1x4x4x2xi8>
  }
}
"""


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main([str(argument) for argument in arguments])
    return int(ended.value.code or 0)


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("by_hand")
    (folder / "model.mlir").write_text(TEXT)
    assert run("compile", folder / "model.mlir", "-q") == 0
    return folder / "model.ctx"


@pytest.mark.parametrize("executor", ["host", "qemu"])
def test_a_function_written_by_hand_runs(executor: str, by_hand: Path, request: pytest.FixtureRequest) -> None:
    if executor == "qemu":
        request.getfixturevalue("qemu")
    image = np.random.default_rng(0).integers(-128, 128, (1, 4, 4, 3)).astype(np.int8)
    session = InferenceSession(str(by_hand), provider_options=[{"executor": executor}])
    (found,) = session.run(["result0"], {"image": image})
    sums = image.astype(np.int64) @ np.array([[1, 4], [2, 5], [3, 6]]) + [10, -20]
    expected = (sums * 2**30 + 2**32) // 2**33
    assert np.abs(expected).max() > 127  # so that saturation shows
    assert np.array_equal(found, np.maximum(np.minimum(expected, 127), -128))


def test_it_has_no_reference(by_hand: Path, tmp_path: Path, capsys: Captured) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 4, 4, 3), np.int8))
    feed = f"image={tmp_path / 'x.npy'}"
    assert run("run", by_hand, "--input", feed, "--executor", "reference") == 1
    text = capsys.readouterr().err
    assert "has no units, only TOSA" in text and "executor host or qemu" in text
    assert run("explain", by_hand) == 0
    assert "2 of 2 nodes on the NPU" in capsys.readouterr().out


def test_compiling_goes_on_from_dumped_tosa(root: Path, tmp_path: Path) -> None:
    digits, qdq, dump = root / "models" / "digits", tmp_path / "digits.qdq.onnx", tmp_path / "dump"
    assert run("quantize", digits / "digits.onnx", "--calib", digits / "digits_calib.npz", "-o", qdq, "-q") == 0
    assert run("compile", qdq, "-o", tmp_path / "whole.ctx", "--dump", dump, "-q") == 0
    assert run("compile", dump / "segment0" / "00.tosa.mlir", "-o", tmp_path / "rest.ctx", "-q") == 0
    assert run("compile", dump / "01_quantize.onnx", "-o", tmp_path / "half.ctx", "-q") == 0
    (whole,) = read(tmp_path / "whole.ctx").segments
    for other in ("rest.ctx", "half.ctx"):
        (segment,) = read(tmp_path / other).segments
        assert segment.steps == whole.steps
        assert segment.tosa_text == whole.tosa_text
        assert bytes(segment.constants) == bytes(whole.constants)
        assert {key: bytes(code) for key, code in segment.objects.items()} == {
            key: bytes(code) for key, code in whole.objects.items()
        }


@pytest.mark.parametrize(
    ("text", "options", "code", "said"),
    [
        (None, (), 1, "cannot be read: No such file"),
        ("", (), 1, "has 0 functions"),
        ("\x00\x01", (), 1, "does not parse as MLIR"),
        (TEXT.replace("tosa.conv2d", "tosa.fft2d"), (), 1, "does not parse as MLIR"),
        (TEXT.replace("dense<33>", "dense<63>"), (), 1, "has the shift 63; expected 2..62"),
        (TEXT, ("--input-shape", "image:1x4x4x3"), 2, "is for ONNX models"),
    ],
)
def test_what_is_wrong_is_named(
    text: str | None, options: tuple[str, ...], code: int, said: str, tmp_path: Path, capsys: Captured
) -> None:
    path = tmp_path / "m.mlir"
    if text is not None:
        path.write_text(text)
    assert run("compile", path, *options, "-q") == code
    message = capsys.readouterr().err
    assert said in message and "next: " in message
    assert not (tmp_path / "m.ctx").exists()


def test_linalg_is_no_start(root: Path, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "model.mlir").write_text(TEXT)
    assert run("compile", tmp_path / "model.mlir", "--dump", tmp_path / "dump", "-q") == 0
    assert run("compile", tmp_path / "dump" / "main" / "01.linalg.mlir", "-q") == 1
    text = capsys.readouterr().err
    assert "is not TOSA" in text and "00.tosa.mlir" in text
