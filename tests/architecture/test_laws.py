"""The tree keeps every law of the layout, and every law can be broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.architecture import laws
from tests.architecture.modules import Module, read_tree

Law = Callable[[tuple[Module, ...]], Iterator[str]]

PACKAGE_LAWS: tuple[Law, ...] = (
    laws.import_law,
    laws.package_law,
    laws.cycles,
    laws.sizes,
    laws.names,
    laws.finished,
    laws.catches,
    laws.rounding,
)
EVERYWHERE: tuple[Law, ...] = (laws.sizes, laws.names)

LONG_FILE = "x = 1\n" * 501
LONG_FUNCTION = "def f():\n" + "    x = 1\n" * 60

# Each line: the law, the files of a tree that breaks it, a part of what it must say.
BROKEN: tuple[tuple[Law, dict[str, str], str], ...] = (
    (laws.import_law, {"errors.py": "import h.report", "report.py": ""}, "h.errors:1 imports h.report"),
    (laws.import_law, {"report.py": "from h import passes", "passes.py": ""}, "imports h.passes"),
    (laws.import_law, {"ops/a.py": "from h.report import x", "report.py": ""}, "imports h.report"),
    (
        laws.import_law,
        {"import_/a.py": "from h.quantize import product", "quantize/product.py": ""},
        "h.quantize.product",
    ),
    (laws.import_law, {"quantize/a.py": "from h.import_ import pipeline", "import_/pipeline.py": ""}, "pipeline"),
    (laws.import_law, {"compile/a.py": "from h.quantize.product import X", "quantize/product.py": ""}, "against"),
    (laws.import_law, {"context/a.py": "def f():\n    import h.driver\n", "driver.py": ""}, "h.context.a:2"),
    (laws.import_law, {"driver.py": "import h.app.session", "app/session.py": ""}, "imports h.app.session"),
    (laws.import_law, {"app/demo.py": "from h.cli import main", "cli.py": ""}, "imports h.cli"),
    (laws.import_law, {"ops/a.py": "from .. import report", "report.py": ""}, "imports h.report"),
    (
        laws.import_law,
        {"ops/a.py": "import importlib\nimportlib.import_module('h.report')", "report.py": ""},
        "h.report",
    ),
    (
        laws.import_law,
        {"extra.py": "from h.ops import spec", "ops/spec.py": "", "qtypes.py": "import h.extra"},
        "h.extra",
    ),
    (laws.import_law, {"errors.py": "from h.gone import x"}, "does not exist"),
    (laws.package_law, {"context/a.py": "def f():\n    from mlir import ir\n"}, "imports mlir; only compile may"),
    (laws.package_law, {"partition/a.py": "import onnxruntime as ort"}, "imports onnxruntime"),
    (laws.package_law, {"ops/a.py": "import onnx_ir"}, "imports onnx_ir"),
    (laws.package_law, {"compile/a.py": "import onnx"}, "imports onnx;"),
    (laws.package_law, {"app/a.py": "import torch"}, "nothing in the package"),
    (
        laws.cycles,
        {"ops/a.py": "import h.ops.b", "ops/b.py": "def f():\n    from h.ops.a import x\n"},
        "h.ops.a imports",
    ),
    (
        laws.cycles,
        {"ops/__init__.py": "from h.ops.a import x", "ops/a.py": "from h.ops import y"},
        "h.ops imports itself",
    ),
    (laws.sizes, {"a.py": LONG_FILE}, "h.a has 501 lines"),
    (laws.sizes, {"a.py": LONG_FUNCTION}, "h.a.f has 61 lines"),
    (laws.sizes, {f"ops/m{i}.py": "" for i in range(13)}, "has 13 files"),
    (laws.names, {"ops/utils.py": ""}, "utils is no name"),
    (laws.names, {"common/a.py": ""}, "common is no name"),
    (laws.finished, {"a.py": "x = 1  # TODO more"}, "h.a:1 holds TODO"),
    (laws.finished, {"a.py": "raise NotImplementedError"}, "holds raise NotImplementedError"),
    (laws.catches, {"app/a.py": "try:\n    pass\nexcept HexqdqError:\n    pass\n"}, "catches HexqdqError"),
    (laws.catches, {"app/a.py": "try:\n    pass\nexcept (OSError, errors.HexqdqError):\n    pass\n"}, "catches"),
    (laws.catches, {"driver.py": "try:\n    pass\nexcept:\n    pass\n"}, "catches everything"),
    (laws.catches, {"driver.py": "try:\n    pass\nexcept Exception:\n    x = 1\n"}, "catches Exception"),
    (laws.rounding, {"ops/a.py": "y = np.rint(x)"}, "calls rint"),
    (laws.rounding, {"ops/a.py": "y = x.clip(0, 255)"}, "calls clip"),
    (laws.rounding, {"context/a.py": "y = (x + 1) >> 3"}, "shifts down"),
)


@pytest.mark.parametrize("law", PACKAGE_LAWS, ids=lambda law: law.__name__)
def test_package_keeps(law: Law, root: Path) -> None:
    assert list(law(read_tree(root / "hexqdq"))) == []


@pytest.mark.parametrize("folder", ["tests", "models", "benchmarks"])
@pytest.mark.parametrize("law", EVERYWHERE, ids=lambda law: law.__name__)
def test_other_folders_keep(law: Law, folder: str, root: Path) -> None:
    if (root / folder).is_dir():
        assert list(law(read_tree(root / folder))) == []


@pytest.mark.parametrize(("law", "files", "said"), BROKEN)
def test_a_broken_tree_is_seen(law: Law, files: dict[str, str], said: str, tmp_path: Path) -> None:
    assert any(said in sentence for sentence in law(_tree(tmp_path, files)))


def test_a_good_tree_passes(tmp_path: Path) -> None:
    files = {
        "errors.py": "",
        "qtypes.py": "from h.errors import E",
        "ops/spec.py": "import h.qtypes",
        "import_/product.py": "from h.ops.spec import S",
        "quantize/pipeline.py": "import onnxruntime\nfrom h.import_.product import ImportedModel",
        "import_/read.py": "try:\n    pass\nexcept Exception as error:\n    raise ValueError from error\n",
        "driver.py": "def f():\n    from h.quantize.pipeline import quantize\n",
        "app/session.py": "def f():\n    from h import driver\n",
        "cli.py": "import typer\nfrom h.app import session\ntry:\n    pass\nexcept Exception:\n    pass\n",
        "__main__.py": "from h.cli import main",
    }
    modules = _tree(tmp_path, files)
    assert [sentence for law in PACKAGE_LAWS for sentence in law(modules)] == []


def _tree(folder: Path, files: dict[str, str]) -> tuple[Module, ...]:
    root = folder / "h"
    for name, text in {"__init__.py": "", **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if path.parent != root and not (path.parent / "__init__.py").exists():
            (path.parent / "__init__.py").write_text("", encoding="utf-8")
    return read_tree(root)
