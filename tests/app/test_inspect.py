"""``hexqdq inspect``: everything in a context, as text and as JSON, without the tool-chain."""

from __future__ import annotations

import dataclasses
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from hexqdq.app.inspect import Lifetime, inspect, memory_plan
from hexqdq.compile.product import Area, Operand, Step, StepList
from hexqdq.context import file
from hexqdq.errors import ContextError
from hexqdq.report import print_tables, to_json_text
from tests.context.samples import INPUT, OUTPUT, abs_part, conv_model, conv_segment


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return file.write(conv_model(host_parts=(abs_part(),)), tmp_path / "model.ctx")


def test_text_names_everything(path: Path) -> None:
    inspection = inspect(path)
    stream = io.StringIO()
    print_tables(inspection.tables(), stream)
    text = stream.getvalue()
    for said in (str(path), "hexagon-v73", "5f5f", "version of numpy", "conv_1x1", "object hexagon", "segment0/units"):
        assert said in text
    assert "u8, scale 0.050000001, zero point 128" in text
    assert "1 of 2 nodes on the NPU" in inspection.to_text()
    rows = {line.split()[2]: line for line in text.splitlines() if " NPU " in line or " CPU " in line}
    assert set(rows) == {"segment0", "abs"}


def test_json_is_the_whole_content(path: Path) -> None:
    data = json.loads(to_json_text(inspect(path).to_json()))
    assert data["nbytes"] == path.stat().st_size
    assert [part["runs_on"] for part in data["parts"]] == ["NPU", "CPU"]
    (segment,) = data["segments"]
    assert segment["steps"] == conv_segment().steps.to_json()["steps"]
    assert segment["objects"] == {"hexagon": len(b"not really ELF")}
    assert segment["units"] == 1
    assert {section["name"] for section in data["sections"]} >= {"graph", "report", "host/abs"}


def test_a_segment_without_units(tmp_path: Path) -> None:
    model = conv_model(dataclasses.replace(conv_segment(), graph=None))
    (segment,) = inspect(file.write(model, tmp_path / "m.ctx")).to_json()["segments"]
    assert segment["units"] is None


def arena(offset: int, nbytes: int, **use: bool) -> Operand:
    return Operand(Area.ARENA, nbytes, offset, **use)


def test_the_memory_plan_follows_values_not_places() -> None:
    steps = StepList(
        (
            Step("a", (Operand(Area.INPUT, 48, reads=True), arena(0, 128, writes=True))),
            Step("b", (arena(0, 64, reads=True), arena(256, 32, writes=True), arena(512, 8, reads=True, writes=True))),
            Step("c", (arena(256, 32, reads=True), arena(0, 128, writes=True))),
            Step("d", (arena(0, 128, reads=True), Operand(Area.OUTPUT, 32, writes=True))),
        ),
        (INPUT,),
        (OUTPUT,),
    )
    assert memory_plan(steps) == (
        Lifetime(0, 128, 0, 1),
        Lifetime(256, 32, 1, 2),
        Lifetime(512, 8, 1, 1),
        Lifetime(0, 128, 2, 3),
    )


def test_damage_anywhere_is_told(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-5000] ^= 1
    path.write_bytes(data)
    with pytest.raises(ContextError, match="damaged"):
        inspect(path)


def test_it_needs_no_tool_chain(path: Path) -> None:
    blocked = (
        "for name in ('mlir', 'llvmlite', 'onnx', 'onnx_ir', 'onnxscript', 'onnxruntime'): sys.modules[name] = None"
    )
    code = f"import sys\n{blocked}\nfrom hexqdq.cli import main\nmain(['inspect', {str(path)!r}])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "conv_1x1" in done.stdout
