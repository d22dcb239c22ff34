"""The ops that the NPU has a form for: what ``hexqdq ops`` prints."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from hexqdq.errors import UsageError
from hexqdq.ops import OPS
from hexqdq.ops.spec import OpSpec
from hexqdq.report import Cell, Table

ALL_LIMITS = "hexqdq ops NAME lists the limits of an op, hexqdq ops --json those of all"


@dataclass(frozen=True)
class OpList:
    """Rows to be told of: briefly, or each with its limits."""

    specs: tuple[OpSpec, ...]
    in_full: bool

    def tables(self) -> tuple[Table, ...]:
        """One row an op; in full one table an op, one row a limit."""
        if not self.in_full:
            return (Table("Ops", ("op", "what"), tuple((spec.op_type, spec.summary) for spec in self.specs)),)
        return tuple(
            Table(f"{spec.op_type}: {spec.summary}", ("limits",), tuple((limit.sentence,) for limit in spec.limits))
            for spec in self.specs
        )

    def to_text(self) -> str:
        return "" if self.in_full else ALL_LIMITS

    def to_json(self) -> list[dict[str, Cell]]:
        rows = ((spec.op_type, spec.summary, "; ".join(limit.sentence for limit in spec.limits)) for spec in self.specs)
        return Table("Ops", ("op", "what", "limits"), tuple(rows)).to_json()


def op_list(names: Sequence[str]) -> OpList:
    """The named rows in full, or all of them briefly; raises UsageError for a name that is none."""
    by_lower_case = {name.lower(): name for name in OPS}
    for name in names:
        if name.lower() not in by_lower_case:
            close = difflib.get_close_matches(name.lower(), by_lower_case, 4, 0.5)
            expected = ", ".join(by_lower_case[key] for key in close) or "one that hexqdq ops lists"
            raise UsageError(f"op {name!r}", f"the NPU has no form for it; expected {expected}", "see hexqdq ops")
    chosen = [by_lower_case[name.lower()] for name in names] or list(OPS)
    return OpList(tuple(OPS[name] for name in chosen), bool(names))
