"""Which tensors of a quantized model are bad, the first one, and why it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from hexqdq.app.calibration.pictures import PictureOptions
from hexqdq.app.calibration.source import open_calibration
from hexqdq.app.convert import signature
from hexqdq.import_.pipeline import import_model
from hexqdq.quantize.calibration.calibrate import Sample
from hexqdq.quantize.calibration.replay import replayable
from hexqdq.quantize.compare.histograms import Histogram, histograms
from hexqdq.quantize.compare.measure import TensorMeasure, measure
from hexqdq.quantize.scaled import marked
from hexqdq.report import Progress, Table

GOOD = 20.0
"""An SQNR in dB below which a tensor counts as bad: an error of a tenth of the values."""
SHOWN = 30
PICTURED = 8
"""How many tensors get a histogram."""
COLUMNS = (
    *("tensor", "op", "type", "SQNR dB", "inherited dB", "introduced dB", "own dB", "cosine", "saturated %"),
    *("worst channel", "its dB", "low", "high"),
)


@dataclass(frozen=True)
class Comparison:
    """``measures`` are in the order of computation; ``good`` is the SQNR from which a tensor is good.

    ``histograms`` are of the tensors ``to_blame``, where they were asked for. ``scaled`` names tensors whose
    channels were scaled on purpose and scaled back later, which are not compared.
    """

    measures: tuple[TensorMeasure, ...]
    good: float = GOOD
    histograms: tuple[Histogram, ...] = ()
    scaled: tuple[str, ...] = ()

    @cached_property
    def bad(self) -> tuple[TensorMeasure, ...]:
        """The bad tensors, in the order of computation."""
        return tuple(entry for entry in self.measures if level(entry.sqnr) < self.good)

    def ranked(self) -> tuple[TensorMeasure, ...]:
        """The bad tensors in the order of computation, then the others, least SQNR first."""
        rest = [entry for entry in self.measures if level(entry.sqnr) >= self.good]
        return (*self.bad, *sorted(rest, key=lambda entry: level(entry.sqnr)))

    def to_blame(self) -> tuple[TensorMeasure, ...]:
        """The first bad tensor, the one where most of its error arises, then those that introduce most."""
        first = [self.bad[0], self._source(self.bad[0])] if self.bad else []
        most = sorted(self.measures, key=lambda entry: level(entry.introduced))
        return tuple({entry.tensor: entry for entry in (*first, *most)}.values())[:PICTURED]

    def cause(self, entry: TensorMeasure) -> str:
        """Whether a tensor's error comes in through its inputs or arises there, and from what."""
        if entry.sqnr is None:
            return "it is equal in both models"
        source = self._source(entry)
        if source is not entry:
            made = f"most is introduced at {source.tensor} ({source.op_type}, {_level(source.introduced)})"
            return f"its error is inherited from its inputs; {made}"
        return f"its error is introduced here: {self._introduced(entry)}"

    def _introduced(self, entry: TensorMeasure) -> str:
        if entry.own is None or entry.own > level(entry.introduced) + 3:
            return "its encoding is good enough, so it comes from weights, bias or the op's other constants"
        if entry.saturated is not None and entry.saturated > 0.01:
            return f"its range leaves out {100 * entry.saturated:.1f} % of the values"
        reach, held = entry.reach or (entry.low, entry.high), f"its values lie in [{entry.low:.4g}, {entry.high:.4g}]"
        if reach[1] - reach[0] > 1.5 * (entry.high - entry.low):
            return f"its range [{reach[0]:.4g}, {reach[1]:.4g}] is too wide: {held}"
        return f"{entry.types[0]} has too few steps for it: {held}, most of them close to 0"

    def _source(self, entry: TensorMeasure) -> TensorMeasure:
        """Where most of a tensor's error arises: up the inputs of least SQNR while most is inherited."""
        while level(entry.inherited) <= level(entry.introduced):
            known = [self._by_name[name] for name in entry.inputs if name in self._by_name]
            if not known:
                break
            entry = min(known, key=lambda measured: level(measured.sqnr))
        return entry

    @cached_property
    def _by_name(self) -> dict[str, TensorMeasure]:
        return {entry.tensor: entry for entry in self.measures}

    def tables(self) -> tuple[Table, ...]:
        rows = tuple(row(entry) for entry in self.ranked()[:SHOWN])
        return (Table("Float against quantized, the first bad tensor first", COLUMNS, rows),)

    def to_text(self) -> str:
        hidden = len(self.measures) - SHOWN
        more = f"; {hidden} more with --json" if hidden > 0 else ""
        found = f"{len(self.bad)} of {len(self.measures)} tensors are below {self.good:g} dB"
        if self.scaled:
            found += f"; {len(self.scaled)} more were scaled on purpose and are not compared"
        if not self.bad:
            return found + more
        first = self.bad[0]
        return f"{found}{more}\nfirst bad tensor: {first.tensor} ({first.op_type}); {self.cause(first)}"

    def to_json(self) -> dict[str, Any]:
        return {
            "good": self.good,
            "first_bad": self.bad[0].tensor if self.bad else None,
            "bad": len(self.bad),
            "scaled": list(self.scaled),
            "tensors": [{**asdict(entry), "cause": self.cause(entry)} for entry in self.ranked()],
        }


def compare(
    exact: Path,
    quantized: Path,
    data: str | Path | Iterable[Sample],
    *,
    input_shapes: Mapping[str, tuple[int, ...]] | None = None,
    pictures: PictureOptions | None = None,
    good: float = GOOD,
    with_histograms: bool = False,
    progress: Progress | None = None,
) -> Comparison:
    """Runs both models on the data; raises ModelError where they have no quantized tensor in common.

    ``with_histograms`` reads the data a second time.
    """
    first, second = import_model(exact, input_shapes), import_model(quantized, input_shapes)
    feeds = open_calibration(data, signature(first), pictures) if isinstance(data, str | Path) else data

    def told(what: str) -> Any:
        return None if progress is None else lambda done, total: progress(what, done, total or 0)

    scaled = tuple(sorted(marked(second.model)))
    if not with_histograms:
        return Comparison(measure(first, second, feeds, told("compare")), good, scaled=scaled)
    with replayable(feeds) as samples:
        comparison = Comparison(measure(first, second, samples, told("compare")), good, scaled=scaled)
        counted = histograms(first, second, samples, comparison.to_blame(), told("histograms"))
        return replace(comparison, histograms=counted)


def level(decibels: float | None) -> float:
    """An SQNR as a number; without an error it is infinite."""
    return float("inf") if decibels is None else decibels


def row(entry: TensorMeasure) -> tuple[str | float | None, ...]:
    """The cells of COLUMNS."""
    return (
        entry.tensor,
        entry.op_type,
        " ".join(entry.types),
        _short(entry.sqnr),
        _short(entry.inherited),
        _short(entry.introduced),
        _short(entry.own),
        _short(entry.cosine, 4),
        None if entry.saturated is None else _short(100 * entry.saturated, 3),
        entry.worst_channel,
        _short(entry.worst_channel_sqnr),
        entry.low,
        entry.high,
    )


def _level(decibels: float | None) -> str:
    return "no error" if decibels is None else f"{decibels:.1f} dB"


def _short(value: float | None, digits: int = 1) -> float | None:
    return None if value is None else float(f"{value:.{digits}f}")
