"""What README and docs say is true: their commands run, their links lead somewhere, generated pages are current."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hexqdq.app.rules import qnn
from hexqdq.ops import OPS, QUANTIZED_ONLY

PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/guide.md",
    "docs/ops.md",
    "docs/qnn.md",
    "docs/numerics.md",
    "docs/models.md",
)


def blocks(text: str, language: str) -> Iterator[str]:
    """The fenced code blocks of a language."""
    yield from re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def op_page() -> str:
    """docs/ops.md as the rows say it."""
    lines = [
        "# Ops",
        "",
        "Generated from the rows in `hexqdq/ops`: `python -m pytest tests/docs --refresh-goldens`.",
        "",
    ]
    for spec in OPS.values():
        lines += [f"## {spec.op_type}", "", f"{spec.summary}.", "", f"Quantization: {spec.trait.value}.", ""]
        lines += [f"* {limit.sentence}" for limit in spec.limits] + [""]
    lines += ["## Quantized only", ""]
    lines += ["No integer form in this version: `hexqdq quantize` puts these between DQ and Q, where onnxruntime"]
    lines += ["reads them, and `hexqdq compile` leaves them on the CPU.", ""]
    lines += ["| op | what | quantization |", "|---|---|---|"]
    for row in QUANTIZED_ONLY:
        name = f"{row.domain}.{row.op_type}" if row.domain else row.op_type
        lines.append(f"| {name} | {row.summary} | {row.trait.value} |")
    lines.append("")
    return "\n".join(lines)


def rules_page() -> str:
    """docs/qnn.md as the rules say it."""
    lines = [
        "# Rules of ONNX Runtime's QNN provider",
        "",
        "What `hexqdq explain --rules qnn` judges by: that provider's published rules for QDQ graphs, in our words.",
        "Generated from `hexqdq/app/rules/qnn.py`: `python -m pytest tests/docs --refresh-goldens`.",
        "",
        f"A Relu or Clip between an op and its Q belongs to the op's group. Of all ops: {qnn.KNOWN_OPS};",
        f"{'; '.join(rule.sentence for rule in qnn.OF_ALL)}; {qnn.LONE_CHANNELS}.",
        "",
    ]
    for kind in qnn.KINDS:
        lines += [f"## {kind.name.capitalize()}", "", f"{', '.join(kind.ops)}.", ""]
        lines += [f"* {rule.sentence}" for rule in kind.rules]
        lines += [f"* {op}: {rule.sentence}" for op in kind.ops for rule in qnn.OF_OP.get(op, ())]
        lines += [""] if kind.rules else []
    return "\n".join(lines)


def test_readme_commands_run(root: Path, tmp_path: Path) -> None:
    """The shell block, then the Python block, in a folder that sees the repository's models."""
    (tmp_path / "models").symlink_to(root / "models")
    text = (root / "README.md").read_text(encoding="utf-8")
    for command in "".join(blocks(text, "sh")).splitlines():
        program, *arguments = command.split()
        assert program == "hexqdq"
        subprocess.run([sys.executable, "-m", "hexqdq", *arguments], cwd=tmp_path, check=True, capture_output=True)
    (code,) = blocks(text, "python")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.strip().isdecimal()


def test_make_targets_exist(root: Path) -> None:
    text = "".join((root / page).read_text(encoding="utf-8") for page in PAGES)
    named = set(re.findall(r"`make ([a-z-]+)`", text))
    assert {"demo", "test"} <= named
    if shutil.which("make") is None:
        pytest.skip("make is not on PATH")
    for target in named:
        subprocess.run(["make", "--dry-run", target], cwd=root, check=True, capture_output=True)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str, root: Path) -> None:
    path = root / page
    for link in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
        assert link.startswith("http") or (path.parent / link).exists(), link


@pytest.mark.parametrize(("name", "page"), [("ops.md", op_page), ("qnn.md", rules_page)])
def test_generated_pages_are_current(name: str, page: Callable[[], str], root: Path, refresh_goldens: bool) -> None:
    path = root / "docs" / name
    if refresh_goldens:
        path.write_text(page(), encoding="utf-8")
    assert path.read_text(encoding="utf-8") == page()
