"""A comparison as one HTML page that needs nothing else."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from hexqdq.app.compare.comparison import COLUMNS, Comparison, row
from hexqdq.errors import UsageError
from hexqdq.files import replace_file, writing
from hexqdq.report import Cell, number

PACKAGES = ("jinja2", "matplotlib")
"""What the extra ``report`` brings."""
TEMPLATE = Path(__file__).with_name("page.html")


def require_packages() -> None:
    """Raises UsageError where the page cannot be made, before the models run."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        problem = f"needs {' and '.join(missing)}, not installed here"
        raise UsageError("--html", problem, "pip install 'hexqdq[report]', or leave --html out")


def write_page(comparison: Comparison, exact: Path, quantized: Path, output: Path) -> None:
    """Writes the page so that a reader finds either the old file or the whole new one."""
    text = page(comparison, exact.name, quantized.name)
    with writing(output):
        output.parent.mkdir(parents=True, exist_ok=True)
    replace_file(output, [text.encode()])


def page(comparison: Comparison, exact: str, quantized: str) -> str:
    """The page's text, the same for equal comparisons."""
    from jinja2 import Environment, StrictUndefined

    from hexqdq.app.compare import plots

    ranked = comparison.ranked()
    by_name = {entry.tensor: entry for entry in comparison.measures}
    cards = [(by_name[found.tensor], found) for found in comparison.histograms]
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(decibels=_decibels, cell=_cell, capitalize_first=_capitalized)
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        exact=exact,
        quantized=quantized,
        measures=comparison.measures,
        scaled=len(comparison.scaled),
        good=f"{comparison.good:g}",
        bad=comparison.bad,
        first=comparison.bad[0] if comparison.bad else None,
        cause=comparison.cause,
        outputs=[entry for entry in comparison.measures if entry.is_output],
        along=plots.error_along_graph(comparison.measures, comparison.to_blame(), comparison.good),
        cards=[(entry, plots.histogram(found, entry)) for entry, found in cards],
        columns=COLUMNS,
        rows=[(entry, row(entry)) for entry in ranked],
    )


def _decibels(level: float | None) -> str:
    return "no error" if level is None else f"{level:.1f} dB"


def _cell(value: Cell) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else number(value)


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]
