"""Records, tables and their two renderings."""

from __future__ import annotations

import io
import json

import pytest

from hexqdq.errors import UsageError
from hexqdq.report import (
    Decision,
    Measure,
    Table,
    decision_table,
    measure_table,
    number,
    plain_lines,
    print_tables,
    reason_table,
    share,
    to_json_text,
)

DECISIONS = (
    Decision("a", "Conv", 0, None, 900),
    Decision("b", "Sin", None, "Sin has no integer form", 0),
    Decision("c", "Sin", None, "Sin has no integer form", 100),
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_node_on_the_cpu_needs_a_reason() -> None:
    with pytest.raises(UsageError, match="no segment and no reason"):
        Decision("a", "Conv", None, None)


@pytest.mark.parametrize("decision", DECISIONS)
def test_decisions_round_trip(decision: Decision) -> None:
    assert Decision.from_json(json.loads(to_json_text(decision))) == decision


def test_share_counts_nodes_and_macs() -> None:
    assert str(share(DECISIONS)) == "1 of 3 nodes on the NPU, 90.0 % of the multiply-accumulates"
    assert str(share(DECISIONS[1:2])) == "0 of 1 nodes on the NPU"


def test_reasons_are_grouped() -> None:
    assert reason_table(DECISIONS).rows == (("Sin has no integer form", 2, "b, c"),)


def test_a_pipe_gets_one_line_per_row_with_nothing_cut() -> None:
    table = Table("T", ("name", "n"), (("x" * 500, 1), ("[bold]y[/bold]", 22)))
    assert plain_lines(table) == ["T", f"{'name':500}   n", f"{'x' * 500}   1", f"{'[bold]y[/bold]':500}  22"]
    stream = io.StringIO()
    print_tables([table], stream)
    assert stream.getvalue() == "\n".join([*plain_lines(table), "", ""])


def test_a_terminal_gets_a_fitted_table_without_markup() -> None:
    stream = Terminal()
    print_tables([Table("T", ("name",), (("[bold]y[/bold]",),)), decision_table(DECISIONS)], stream)
    assert "[bold]y[/bold]" in stream.getvalue()
    assert "NPU segment 0" in stream.getvalue()


def test_measures_become_rows() -> None:
    measures = (Measure("load time", 1.25, "ms"), Measure("context", 123456, "bytes"))
    assert plain_lines(measure_table(measures, "M")) == [
        "M",
        "what         value  unit",
        "load time     1.25  ms",
        "context    123,456  bytes",
    ]
    assert str(measures[1]) == "context 123,456 bytes"


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (1234567, "1,234,567"), (0.012345, "0.01235"), (1234.56, "1,234.6")]
)
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text


def test_json_is_canonical() -> None:
    assert to_json_text({"b": Measure("m", 1, "s"), "a": DECISIONS[:1]}) == json.dumps(
        {
            "a": [{"macs": 900, "node": "a", "op_type": "Conv", "reason": None, "segment": 0}],
            "b": {"name": "m", "unit": "s", "value": 1},
        },
        indent=2,
    )
