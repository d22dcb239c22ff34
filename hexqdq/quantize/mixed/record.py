"""What mixed precision chose and why, as it is reported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hexqdq.report import Table


@dataclass(frozen=True)
class Point:
    """One measured choice of groups.

    ``share`` of the multiply-accumulates at 16-bit activations and ``packets`` that 16 bits add, both in percent
    of the whole; ``sqnr`` of the model's outputs in dB.
    """

    groups: int
    mac_percent: float
    packet_percent: float
    sqnr: float
    chosen: bool = False


@dataclass(frozen=True)
class Widened:
    """A tensor group with 16 bits and the noise at the outputs that its readings made with 8, as SQNR in dB."""

    tensor: str
    op_type: str
    sqnr: float
    mac_percent: float


@dataclass(frozen=True)
class MixedPrecision:
    """The Pareto curve from 8 to 16 bits, the chosen point and what it widens, loudest first.

    ``reason`` is a sentence on why that point; ``weights_sqnr`` is that of quantized weights alone.
    """

    reason: str
    weights_sqnr: float
    curve: tuple[Point, ...]
    widened: tuple[Widened, ...]

    @property
    def chosen(self) -> Point:
        return next(point for point in self.curve if point.chosen)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> MixedPrecision:
        curve = tuple(Point(**point) for point in data["curve"])
        return cls(data["reason"], data["weights_sqnr"], curve, tuple(Widened(**entry) for entry in data["widened"]))

    def tables(self, most: int = 12) -> tuple[Table, ...]:
        """The curve, and the ``most`` loudest of what was widened."""
        rows = tuple(
            (
                p.groups,
                _percent(p.mac_percent),
                _percent(p.packet_percent),
                _db(p.sqnr),
                "<- " + self.reason if p.chosen else "",
            )
            for p in self.curve
        )
        curve = Table(
            "16-bit activations: what they cost and give",
            ("groups", "MACs %", "packets added %", "output SQNR dB", ""),
            rows,
        )
        shown = tuple((w.tensor, w.op_type, _db(w.sqnr), _percent(w.mac_percent)) for w in self.widened[:most])
        more = len(self.widened) - len(shown)
        title = "Widened to 16 bits, loudest first" + (f" (and {more} more, see --json)" if more else "")
        widened = Table(title, ("tensor", "made by", "output SQNR dB with its 8 bits alone", "MACs %"), shown)
        return (curve, widened) if shown else (curve,)


def _percent(value: float) -> str:
    return f"{value:.1f}"


def _db(value: float) -> str:
    return f"{value:.1f}"
