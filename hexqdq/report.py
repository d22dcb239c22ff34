"""Decision and Measure records, and their rendering as text tables and as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import IO, Any

from hexqdq.errors import UsageError

Cell = str | int | float | None

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and of how much; the total is 0 where unknown."""


@dataclass(frozen=True)
class Decision:
    """Where one node of the model runs: in an NPU segment, or on the CPU for a reason.

    ``segment`` is the number of the NPU segment, None on the CPU; ``reason`` is then a sentence.
    ``macs`` counts the node's multiply-accumulates.
    """

    node: str
    op_type: str
    segment: int | None
    reason: str | None
    macs: int = 0

    def __post_init__(self) -> None:
        if self.segment is None and not self.reason:
            raise UsageError(f"decision on {self.node}", "no segment and no reason; expected one of them")

    @property
    def place(self) -> str:
        return "CPU" if self.segment is None else f"NPU segment {self.segment}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Decision:
        return cls(data["node"], data["op_type"], data["segment"], data["reason"], data["macs"])


@dataclass(frozen=True)
class Measure:
    """One measured number with its unit, such as ``Measure("load time", 3.1, "ms")``."""

    name: str
    value: float
    unit: str

    def __str__(self) -> str:
        return f"{self.name} {number(self.value)} {self.unit}".rstrip()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Table:
    """A titled table; numbers stay numbers until they are rendered."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def to_json(self) -> list[dict[str, Cell]]:
        """One object per row, keyed by column."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


@dataclass(frozen=True)
class Share:
    """How much of a model the NPU runs."""

    nodes: int
    npu_nodes: int
    macs: int
    npu_macs: int

    def __str__(self) -> str:
        text = f"{self.npu_nodes} of {self.nodes} nodes on the NPU"
        return f"{text}, {100 * self.npu_macs / self.macs:.1f} % of the multiply-accumulates" if self.macs else text


def share(decisions: Iterable[Decision]) -> Share:
    """Counts nodes and multiply-accumulates by place."""
    listed = list(decisions)
    on_npu = [decision for decision in listed if decision.segment is not None]
    return Share(len(listed), len(on_npu), sum(d.macs for d in listed), sum(d.macs for d in on_npu))


def decision_table(decisions: Iterable[Decision], title: str = "Where each node runs") -> Table:
    """One row per node in the order given."""
    rows = tuple((d.node, d.op_type, d.place, d.macs or None, d.reason) for d in decisions)
    return Table(title, ("node", "op", "runs on", "MACs", "reason"), rows)


def reason_table(decisions: Iterable[Decision], title: str = "Why nodes stay on the CPU") -> Table:
    """One row per reason with the nodes it keeps on the CPU."""
    nodes_by_reason: dict[str, list[str]] = {}
    for decision in decisions:
        if decision.segment is None and decision.reason:
            nodes_by_reason.setdefault(decision.reason, []).append(decision.node)
    rows = tuple((reason, len(nodes), ", ".join(nodes[:4])) for reason, nodes in nodes_by_reason.items())
    return Table(title, ("reason", "nodes", "first nodes"), rows)


def measure_table(measures: Iterable[Measure], title: str) -> Table:
    """One row per measure."""
    return Table(title, ("what", "value", "unit"), tuple((m.name, m.value, m.unit) for m in measures))


def number(value: float) -> str:
    """A number as people read it: integers grouped, others with three significant digits or more."""
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.4g}"


def print_tables(tables: Iterable[Table], stream: IO[str] | None = None) -> None:
    """Tables as text: fitted to a terminal; in a pipe one line per row, as long as it needs to be."""
    out = stream or sys.stdout
    for table in tables:
        if out.isatty():
            _print_fitted(table, out)
        else:
            out.write("\n".join((*plain_lines(table), "", "")))


def plain_lines(table: Table) -> list[str]:
    """The title, the columns and the rows as aligned lines."""
    cells = [table.columns, *(tuple(_text(cell) for cell in row) for row in table.rows)]
    numeric = [_is_numeric(table.rows, index) for index in range(len(table.columns))]
    widths = [max(len(row[index]) for row in cells) for index in range(len(table.columns))]
    lines = []
    for row in cells:
        places = zip(row, widths, numeric, strict=True)
        lines.append("  ".join(c.rjust(width) if right else c.ljust(width) for c, width, right in places).rstrip())
    return [table.title, *lines]


def _print_fitted(table: Table, stream: IO[str]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table as RichTable

    shown = RichTable(title=table.title, title_justify="left", box=SIMPLE_HEAD)
    for index, column in enumerate(table.columns):
        shown.add_column(column, justify="right" if _is_numeric(table.rows, index) else "left")
    for row in table.rows:
        shown.add_row(*(escape(_text(cell)) for cell in row))
    Console(file=stream, highlight=False).print(shown)


def to_json_text(data: Any) -> str:
    """Canonical JSON for machines: sorted keys, records through their ``to_json``."""
    return json.dumps(data, indent=2, sort_keys=True, default=_plain)


def _plain(value: Any) -> Any:
    return value.to_json() if hasattr(value, "to_json") else asdict(value)


def _is_numeric(rows: Sequence[tuple[Cell, ...]], index: int) -> bool:
    cells = [row[index] for row in rows if row[index] is not None]
    return bool(cells) and not any(isinstance(cell, str) for cell in cells)


def _text(cell: Cell) -> str:
    if cell is None:
        return ""
    return cell if isinstance(cell, str) else number(cell)
