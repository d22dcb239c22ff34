"""Which tensor broke it: what ``hexqdq compare`` prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hexqdq.app.calibration.pictures import PictureOptions
from hexqdq.app.calibration.source import open_calibration
from hexqdq.app.convert import signature
from hexqdq.import_.pipeline import import_model
from hexqdq.quantize.calibration.calibrate import Sample
from hexqdq.quantize.measure import TensorMeasure, measure
from hexqdq.report import Progress, Table

GOOD = 20.0
"""An SQNR in dB below which a tensor counts as bad: an error of a tenth of the values."""
SHOWN = 30
COLUMNS = ("tensor", "op", "SQNR dB", "own dB", "cosine", "saturated %", "worst channel", "its dB", "low", "high")


@dataclass(frozen=True)
class Comparison:
    """``measures`` are in the order of computation; ``good`` is the SQNR from which a tensor is good."""

    measures: tuple[TensorMeasure, ...]
    good: float = GOOD

    def ranked(self) -> tuple[TensorMeasure, ...]:
        """The bad tensors in the order of computation, then the others, least SQNR first."""
        bad = [entry for entry in self.measures if self._is_bad(entry)]
        rest = [entry for entry in self.measures if not self._is_bad(entry)]
        return (*bad, *sorted(rest, key=_sqnr))

    def _is_bad(self, entry: TensorMeasure) -> bool:
        return _sqnr(entry) < self.good

    def tables(self) -> tuple[Table, ...]:
        rows = tuple(_row(entry) for entry in self.ranked()[:SHOWN])
        return (Table("Float against quantized, the first bad tensor first", COLUMNS, rows),)

    def to_text(self) -> str:
        bad = [entry for entry in self.measures if self._is_bad(entry)]
        hidden = len(self.measures) - SHOWN
        more = f"; {hidden} more with --json" if hidden > 0 else ""
        found = f"{len(bad)} of {len(self.measures)} tensors are below {self.good:g} dB"
        if not bad:
            return found + more
        return f"{found}{more}\nfirst bad tensor: {bad[0].tensor} ({bad[0].op_type}); {_cause(bad[0], self.good)}"

    def to_json(self) -> dict[str, Any]:
        bad = [entry.tensor for entry in self.measures if self._is_bad(entry)]
        return {
            "good": self.good,
            "first_bad": bad[0] if bad else None,
            "bad": len(bad),
            "tensors": [asdict(entry) for entry in self.ranked()],
        }


def compare(
    exact: Path,
    quantized: Path,
    data: str | Path | Iterable[Sample],
    *,
    input_shapes: Mapping[str, tuple[int, ...]] | None = None,
    pictures: PictureOptions | None = None,
    good: float = GOOD,
    progress: Progress | None = None,
) -> Comparison:
    """Runs both models on the data; raises ModelError where they have no quantized tensor in common."""
    first, second = import_model(exact, input_shapes), import_model(quantized, input_shapes)
    feeds = open_calibration(data, signature(first), pictures) if isinstance(data, str | Path) else data
    tell = None if progress is None else lambda done, total: progress("compare", done, total or 0)
    return Comparison(measure(first, second, feeds, tell), good)


def _sqnr(entry: TensorMeasure) -> float:
    return float("inf") if entry.sqnr is None else entry.sqnr


def _cause(entry: TensorMeasure, good: float) -> str:
    """Whether the tensor's own encoding is at fault."""
    if entry.own is None or entry.own >= good:
        return "its encoding is good enough: the error comes from its weights and inputs"
    if entry.saturated is not None and entry.saturated > 0.01:
        return f"its range leaves out {100 * entry.saturated:.1f} % of the values"
    return f"its range [{entry.low:.4g}, {entry.high:.4g}] is too wide for its steps"


def _row(entry: TensorMeasure) -> tuple[str | float | None, ...]:
    return (
        entry.tensor,
        entry.op_type,
        _short(entry.sqnr),
        _short(entry.own),
        _short(entry.cosine, 4),
        None if entry.saturated is None else _short(100 * entry.saturated, 3),
        entry.worst_channel,
        _short(entry.worst_channel_sqnr),
        entry.low,
        entry.high,
    )


def _short(value: float | None, digits: int = 1) -> float | None:
    return None if value is None else float(f"{value:.{digits}f}")
