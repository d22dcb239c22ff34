"""Commands, messages and exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from hexqdq import cli
from hexqdq.ops import OPS
from hexqdq.target import TARGETS

Captured = pytest.CaptureFixture[str]


def run(*arguments: object) -> int:
    """A command's exit code, run in this process."""
    with pytest.raises(SystemExit) as ended:
        cli.main([str(argument) for argument in arguments])
    return int(ended.value.code or 0)


@pytest.fixture(scope="module")
def digits(root: Path) -> Path:
    return root / "models" / "digits"


def test_help_names_every_command(capsys: Captured) -> None:
    assert run("--help") == 0
    text = capsys.readouterr().out
    for command in ("quantize", "compile", "run", "explain", "inspect", "compare", "demo", "targets", "ops"):
        assert command in text


def test_version(capsys: Captured) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out.startswith("hexqdq ")


def test_usage_errors_exit_2(capsys: Captured) -> None:
    assert run("nothing") == 2
    assert run("quantize", "x.onnx") == 2
    assert run("compile", "x.onnx", "--target", "v99") == 2
    assert "hexagon-v73" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("nothing",), "hexqdq --help"),
        (("quantize",), "hexqdq quantize --help"),
        (("compile", "x.onnx", "--outpt", "y"), "--output"),
        (("compile", "x.onnx", "-o"), "--help"),
        (("quantize", "x.onnx", "--percentile", "high"), "--percentile"),
        (("targets", "more"), "hexqdq targets --help"),
        (("ops", "Convv"), "Conv, "),
    ],
)
def test_every_usage_error_has_a_next_step(words: tuple[str, ...], told: str, capsys: Captured) -> None:
    assert run(*words) == 2
    text = capsys.readouterr().err
    assert text.startswith("error: ") and "\n  next: " in text and told in text


def test_no_command_is_answered_with_help(capsys: Captured) -> None:
    assert run() == 2
    assert "Commands:" in capsys.readouterr().out


def test_an_interrupt_is_no_fault(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_show", interrupt)
    assert run("targets") == 130
    assert not capsys.readouterr().err


@pytest.mark.parametrize("text", ["x", "x:", ":1x2", "x:1x-2", "x:1x0", "x:axb"])
def test_a_bad_input_shape_exits_2(text: str, capsys: Captured) -> None:
    assert run("compile", "x.onnx", "--input-shape", text) == 2
    assert "1x3x32x32" in capsys.readouterr().err


def test_a_name_with_colons_keeps_them() -> None:
    assert cli._shapes(["serving:0:1x32x32x3", "t:8"]) == {"serving:0": (1, 32, 32, 3), "t": (8,)}


def test_input_faults_exit_1_without_traceback(tmp_path: Path, capsys: Captured) -> None:
    assert run("compile", tmp_path / "missing.onnx") == 1
    text = capsys.readouterr().err
    assert text.startswith("error: ") and "missing.onnx" in text and "next: " in text
    assert "Traceback" not in text


def test_our_fault_exits_3_and_shows_more_on_demand(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    def fail() -> None:
        raise RuntimeError("broken inside")

    monkeypatch.setattr(cli, "_show", lambda *_, **__: fail())
    assert run("targets") == 3
    text = capsys.readouterr().err
    assert "broken inside" in text and "HEXQDQ_DEBUG=1" in text and "Traceback" not in text
    monkeypatch.setenv("HEXQDQ_DEBUG", "1")
    assert run("targets") == 3
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(("module", "code"), [("onnx_ir", 2), ("mlir.ir", 2), ("something_else", 3)])
def test_a_missing_extra_is_named(module: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    monkeypatch.setattr(cli, "_show", fail)
    assert run("targets") == code
    assert ("pip install 'hexqdq[compile]'" in capsys.readouterr().err) == (code == 2)


def test_targets_and_ops_list_every_row(capsys: Captured) -> None:
    assert run("targets") == 0
    text = capsys.readouterr().out
    assert all(target.name in text for target in TARGETS)
    assert run("ops", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["op"] for row in rows] == list(OPS)
    for row, spec in zip(rows, OPS.values(), strict=True):
        assert all(limit.sentence in row["limits"] for limit in spec.limits)


def test_ops_are_listed_briefly_and_one_in_full(capsys: Captured) -> None:
    assert run("ops") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(OPS) + 4 and "limit" in lines[-1]
    assert run("ops", "conv", "Slice") == 0
    text = capsys.readouterr().out
    assert all(limit.sentence in text for name in ("Conv", "Slice") for limit in OPS[name].limits)


def test_a_float_model_is_refused_with_the_command_to_run(digits: Path, tmp_path: Path, capsys: Captured) -> None:
    assert run("compile", digits / "digits.onnx", "-o", tmp_path / "x.ctx") == 1
    assert f"hexqdq quantize {digits / 'digits.onnx'} --calib" in capsys.readouterr().err
    assert not (tmp_path / "x.ctx").exists()


def test_quantize_writes_a_model_and_dumps_stages(digits: Path, tmp_path: Path, capsys: Captured) -> None:
    path, dump = tmp_path / "d.qdq.onnx", tmp_path / "dump"
    arguments = ("quantize", digits / "digits.onnx", "--calib", digits / "digits_calib.npz", "-o", path)
    assert run(*arguments, "--dump", dump) == 0
    captured = capsys.readouterr()
    assert f"wrote {path}" in captured.out
    assert "calibrate: 96" in captured.err
    assert sorted(file.name for file in dump.iterdir()) == ["00_import.onnx", "01_quantize.onnx"]
    first = path.read_bytes()
    assert run(*arguments, "--quiet") == 0
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""
    assert path.read_bytes() == first
    assert run(*arguments, "--json") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["output"] == str(path)
    assert captured.err == ""


@pytest.fixture(scope="module")
def built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with digits.qdq.onnx, digits.ctx and what compiling dumped."""
    folder = tmp_path_factory.mktemp("built")
    digits = root / "models" / "digits"
    qdq, context = folder / "digits.qdq.onnx", folder / "digits.ctx"
    assert run("quantize", digits / "digits.onnx", "--calib", digits / "digits_calib.npz", "-o", qdq, "-q") == 0
    assert run("compile", qdq, "-o", context, "--dump", folder / "dump", "-q") == 0
    with np.load(digits / "digits_heldout.npz") as held_out:
        np.save(folder / "x.npy", held_out["x"][:1])
    return folder


def test_compile_dumps_every_stage(built: Path) -> None:
    names = sorted(path.name for path in (built / "dump").iterdir() if path.is_file())
    assert [name.split(".")[0] for name in names[:2]] == ["00_import", "01_quantize"]
    assert names[-1].startswith("02_partition")
    (segment,) = (path for path in (built / "dump").iterdir() if path.is_dir())
    ends = {path.name.split(".", 1)[1] for path in segment.iterdir()}
    assert {"tosa.mlir", "linalg.mlir", "steps.json", "hexagon.ll", "hexagon.s", "hexagon.so"} <= ends


def test_compile_reports_sizes_and_reasons(built: Path, tmp_path: Path, capsys: Captured) -> None:
    assert run("compile", built / "digits.qdq.onnx", "-o", tmp_path / "d.ctx", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    measures = {measure["name"]: measure["value"] for measure in data["measures"]}
    assert measures["segments"] == 1
    assert measures["context"] == (tmp_path / "d.ctx").stat().st_size
    assert all(decision["segment"] == 0 for decision in data["decisions"])
    assert (tmp_path / "d.ctx").read_bytes() == (built / "digits.ctx").read_bytes()


def test_a_model_that_stays_on_the_cpu_needs_leave(digits: Path, tmp_path: Path, capsys: Captured) -> None:
    output = tmp_path / "float.ctx"
    assert run("compile", digits / "digits.onnx", "-o", output, "--allow-cpu") == 0
    assert "0 of 24 nodes on the NPU" in capsys.readouterr().out
    with np.load(digits / "digits_heldout.npz") as held_out:
        np.save(tmp_path / "x.npy", held_out["x"][:1])
    assert run("run", output, "--input", f"image={tmp_path / 'x.npy'}", "--json") == 0


@pytest.mark.parametrize("executor", ["host", "reference", "qemu"])
def test_run_writes_outputs(executor: str, built: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if executor == "qemu":
        request.getfixturevalue("qemu")
    outputs = tmp_path / "out.npz"
    feed = f"image={built / 'x.npy'}"
    assert run("run", built / "digits.ctx", "--input", feed, "-o", outputs, "--executor", executor) == 0
    expected = tmp_path / "reference.npz"
    assert run("run", built / "digits.ctx", "--input", feed, "-o", expected, "--executor", "reference") == 0
    with np.load(outputs) as found, np.load(expected) as wanted:
        assert found["logits"].tobytes() == wanted["logits"].tobytes()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--input", "image"], 2, "NAME=FILE.npy"),
        (["--input", "image=missing.npy"], 1, "missing.npy"),
        (["--input", "other=x.npy"], 1, "image"),
        ([], 1, "image"),
        (["--input", "image=x.npy", "--executor", "magic"], 2, "qemu"),
        (["--input", "image=x.npy", "-o", "out.txt"], 2, ".npz"),
    ],
)
def test_run_names_what_is_wrong(
    arguments: list[str], code: int, said: str, built: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(built)
    assert run("run", "digits.ctx", *arguments) == code
    assert said in capsys.readouterr().err


def test_explain_takes_float_qdq_and_contexts(digits: Path, built: Path, capsys: Captured) -> None:
    for path, nodes in ((digits / "digits.onnx", 82), (built / "digits.qdq.onnx", 82), (built / "digits.ctx", 82)):
        assert run("explain", path, "--json") == 0
        data = json.loads(capsys.readouterr().out)
        assert len(data["nodes"]) == nodes
        assert data["npu_mac_share"] == 1.0
        assert (data["assumption"] is not None) == (path.name == "digits.onnx")
    assert run("explain", digits / "digits.onnx") == 0
    assert "--preset a8w8" in capsys.readouterr().out


def test_explain_lists_what_breaks_the_rules_of_another_back_end(
    digits: Path, built: Path, tmp_path: Path, capsys: Captured
) -> None:
    for path in (digits / "digits.onnx", built / "digits.qdq.onnx"):
        assert run("explain", path, "--rules", "qnn") == 0
        assert capsys.readouterr().out.startswith("0 of 16 node groups break the rules qnn")
    broken = onnx.load(built / "digits.qdq.onnx")
    next(node for node in broken.graph.node if node.output[0] == "flatten_quantized").input[1] = "logits_scale"
    onnx.save(broken, tmp_path / "broken.onnx")
    assert run("explain", tmp_path / "broken.onnx", "--rules", "qnn", "--json") == 0
    (breach,) = json.loads(capsys.readouterr().out)["breaches"]
    assert breach["op_type"] == "Flatten" and "share scale and zero point" in breach["rule"]
    assert run("explain", digits / "digits.onnx", "--rules", "magic") == 2
    assert "expected one of qnn" in capsys.readouterr().err


def test_a_folder_calibrates_as_the_stack_does(digits: Path, tmp_path: Path) -> None:
    folder = tmp_path / "calib"
    folder.mkdir()
    with np.load(digits / "digits_calib.npz") as stack:
        for index, image in enumerate(stack["image"]):
            np.savez(folder / f"{index:03d}.npz", image=image[None])
    for name, data in (("a", folder), ("b", digits / "digits_calib.npz")):
        assert run("quantize", digits / "digits.onnx", "--calib", data, "-o", tmp_path / f"{name}.onnx", "-q") == 0
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


def test_quantize_keeps_a_qdq_model(digits: Path, tmp_path: Path, capsys: Captured) -> None:
    first, second = tmp_path / "a.onnx", tmp_path / "b.onnx"
    calib = ("--calib", digits / "digits_calib.npz")
    assert run("quantize", digits / "digits.onnx", *calib, "-o", first, "-q") == 0
    assert run("quantize", first, *calib, "-o", second) == 0
    assert "Already quantized" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"other": np.zeros((2, 1, 8, 8), np.float32)}, "has no 'image', only other"),
        ({"image": np.zeros((2, 8, 8), np.float32)}, "has shape (2, 8, 8); expected samples of shape (1, 1, 8, 8)"),
        ({"image": np.zeros((0, 1, 8, 8), np.float32)}, "at least one"),
        ({"image": np.full((1, 1, 8, 8), np.nan, np.float32)}, "NaN"),
    ],
)
def test_bad_calibration_is_named(
    arrays: dict[str, Any], said: str, digits: Path, tmp_path: Path, capsys: Captured
) -> None:
    np.savez(tmp_path / "c.npz", **arrays)
    output = tmp_path / "x.onnx"
    assert run("quantize", digits / "digits.onnx", "--calib", tmp_path / "c.npz", "-o", output) == 1
    assert said in capsys.readouterr().err
    assert not output.exists()


@pytest.mark.parametrize("name", ["missing", "empty", "broken.npz", "text.txt"])
def test_unreadable_calibration_is_named(name: str, digits: Path, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 no archive")
    (tmp_path / "text.txt").write_text("1 2 3")
    assert run("quantize", digits / "digits.onnx", "--calib", tmp_path / name, "-o", tmp_path / "x.onnx") == 1
    assert name in capsys.readouterr().err


def test_a_bad_recipe_exits_2(digits: Path, tmp_path: Path, capsys: Captured) -> None:
    recipe = tmp_path / "r.json"
    for text, said in (("{", "cannot be read"), ("[]", "no JSON object"), ('{"method": "magic"}', "minmax")):
        recipe.write_text(text)
        arguments = ("--calib", digits / "digits_calib.npz", "--recipe", recipe, "-o", tmp_path / "x.onnx")
        assert run("quantize", digits / "digits.onnx", *arguments) == 2
        assert said in capsys.readouterr().err


def test_module_runs() -> None:
    done = subprocess.run([sys.executable, "-m", "hexqdq", "targets", "--json"], capture_output=True, check=True)
    assert json.loads(done.stdout)
