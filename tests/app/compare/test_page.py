"""The page of a comparison: whole in itself, with the first bad tensor on top; its histograms count every value."""

from __future__ import annotations

import html.parser
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest

from hexqdq.app.compare import comparison as module
from hexqdq.app.compare import page
from hexqdq.app.compare.comparison import Comparison, compare
from hexqdq.errors import UsageError
from hexqdq.import_.pipeline import import_model
from hexqdq.quantize.pipeline import quantize
from hexqdq.quantize.recipe import Recipe
from hexqdq.quantize.writing.save import save
from tests.quantize.graphs import model, samples

CHAIN = """m (float[1,3,8,8] x) => (float[1,4,6,6] y) {
    a = Conv(x, w, b) r = Relu(a) s = Sigmoid(r) y = Mul(r, s)
}"""
VOID = ("meta", "link", "br", "img", "hr", "input")


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """A comparison in which the range of ``r`` is far too wide; the samples can be read once only."""
    folder = tmp_path_factory.mktemp("page")
    onnx.save(model(CHAIN), folder / "float.onnx")
    imported = import_model(folder / "float.onnx")
    feeds = samples(imported)
    plain = Recipe(method="minmax", bias_correct=False, smooth=False, mixed=False)
    ranges = {**quantize(imported, feeds, plain).ranges, "r": (0.0, 2000.0)}
    save(quantize(imported, None, plain, ranges=ranges), folder / "qdq.onnx")
    return compare(folder / "float.onnx", folder / "qdq.onnx", once(feeds), with_histograms=True)


def once(feeds: list[Any]) -> Iterator[Any]:
    yield from feeds


class _Tags(html.parser.HTMLParser):
    """Checks that tags close in order; keeps rows and what is loaded from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loaded: list[str] = []
        self.count: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.count[tag] = self.count.get(tag, 0) + 1
        self.loaded += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_page_is_whole_in_itself(broken: Comparison) -> None:
    text = page.page(broken, "float.onnx", "qdq.onnx")
    tags = _Tags()
    tags.feed(text)
    assert tags.open == []
    assert all(link.startswith("#") for link in tags.loaded)
    assert tags.count["svg"] == 1 + len(broken.histograms) == 6
    assert tags.count["tr"] == 1 + len(broken.measures)
    assert tags.count["title"] == 1
    assert "http" not in re.sub(r"xmlns(:\w+)?=\"[^\"]+\"", "", text)
    assert text == page.page(broken, "float.onnx", "qdq.onnx")


def test_first_bad_tensor_is_on_top(broken: Comparison) -> None:
    text = page.page(broken, "float.onnx", "qdq.onnx")
    body = text[text.index("<tbody>") :]
    assert 'class="bad" title="r"' in body[: body.index("</tr>")]
    assert 'The first is <span class="name">r</span>' in text
    assert broken.histograms[0].tensor == "r"


def test_names_are_escaped(broken: Comparison) -> None:
    assert "<b>.onnx" not in page.page(broken, "<b>.onnx", "qdq.onnx")


def test_histograms_count_every_value(broken: Comparison) -> None:
    for found in broken.histograms:
        entry = next(entry for entry in broken.measures if entry.tensor == found.tensor)
        assert found.exact.sum() == found.quantized.sum() > 0
        assert found.edges[0] <= entry.low and entry.high <= found.edges[-1]
        assert entry.reach is None or (found.edges[0] <= entry.reach[0] and entry.reach[1] <= found.edges[-1])
        assert found.exact.size <= 2 * 100
    wide = broken.histograms[0]
    assert np.count_nonzero(wide.exact) == 1 and wide.exact[0] == wide.exact.sum()


def test_bins_hold_whole_steps(broken: Comparison) -> None:
    """Else counts of quantized values would rise and fall from bin to bin."""
    entry = next(entry for entry in broken.measures if entry.tensor == "y")
    found = next(found for found in broken.histograms if found.tensor == "y")
    assert entry.reach is not None
    steps = np.diff(found.edges) / ((entry.reach[1] - entry.reach[0]) / 255)
    assert steps == pytest.approx(np.full(steps.size, round(float(steps[0]))))


def test_a_missing_package_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "find_spec", lambda name: None if name == "matplotlib" else object())
    with pytest.raises(UsageError, match=r"hexqdq\[report\]"):
        page.require_packages()


def test_pictured_tensors_are_few(broken: Comparison) -> None:
    assert len(broken.to_blame()) <= module.PICTURED
