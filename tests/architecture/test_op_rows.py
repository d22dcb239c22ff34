"""Every op has its row, limits, reference, lowering and cases; a missing one is named."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hexqdq.compile.tosa import LOWERINGS
from hexqdq.ops import OPS, QUANT_ROWS, QUANTIZED_ONLY
from hexqdq.ops.spec import Condition
from hexqdq.ops.traits import QuantRow, Trait

WITHOUT_TOSA: frozenset[str] = frozenset()
"""Ops whose row says that they have no sensible TOSA form."""


def case_op_types(root: Path) -> set[str]:
    """The op types that the ladder's CASES name, over every ``tests/ops/test_<family>.py``."""
    found: set[str] = set()
    for path in sorted((root / "tests" / "ops").glob("test_*.py")):
        cases = getattr(importlib.import_module(f"tests.ops.{path.stem}"), "CASES", ())
        found |= {op_type_of(case) for case in (cases.values() if isinstance(cases, Mapping) else cases)}
    return found


def op_type_of(case: Any) -> str:
    return str(case.op_type)


def gaps(rows: Mapping[str, Any], lowerings: Mapping[str, Any], cases: set[str]) -> Iterator[str]:
    """What is missing, as sentences."""
    for name, spec in rows.items():
        if spec.op_type != name:
            yield f"{name}: its row says {spec.op_type}"
        if not spec.limits:
            yield f"{name}: no limits"
        yield from (f"{name}: a limit without its sentence" for limit in spec.limits if not limit.sentence.strip())
        if not spec.summary:
            yield f"{name}: no summary for the op table"
        if not callable(spec.reference):
            yield f"{name}: no numpy reference"
        if name not in lowerings and name not in WITHOUT_TOSA:
            yield f"{name}: no TOSA lowering"
        if name not in cases:
            yield f"{name}: no cases in tests/ops"
    yield from (f"{name}: a lowering without a row" for name in lowerings if name not in rows)
    yield from (f"{name}: cases without a row" for name in sorted(cases - set(rows)))


def row_gaps(rows: Sequence[QuantRow]) -> Iterator[str]:
    """What is wrong with rows of ops that are quantized only, as sentences."""
    seen = {(spec.domain, spec.op_type) for spec in OPS.values()}
    for row in rows:
        name = row.op_type
        if (row.domain, name) in seen:
            yield f"{name}: a second row"
        seen.add((row.domain, name))
        if not row.summary:
            yield f"{name}: no summary for the op table"
        if not (row.data_inputs or row.variadic):
            yield f"{name}: no data"
        if row.ties and row.trait is not Trait.RECURRENT:
            yield f"{name}: states of what is no recurrence"


def test_rows_without_an_integer_form_are_complete() -> None:
    assert list(row_gaps(QUANTIZED_ONLY)) == []
    assert len(QUANT_ROWS) == len(OPS) + len(QUANTIZED_ONLY)


def test_a_gap_of_such_a_row_is_seen() -> None:
    again = QuantRow(op_type="Conv", trait=Trait.CONTRACTION, summary="s")
    mute = QuantRow(op_type="Mute", trait=Trait.MOVEMENT, data_inputs=(), ties=((0, (0,)),))
    assert list(row_gaps((again, mute))) == [
        "Conv: a second row",
        "Mute: no summary for the op table",
        "Mute: no data",
        "Mute: states of what is no recurrence",
    ]


def test_every_row_is_complete(root: Path) -> None:
    assert list(gaps(OPS, LOWERINGS, case_op_types(root))) == []


def test_a_gap_is_seen() -> None:
    def reference() -> None: ...

    limit = Condition("x must be y", lambda unit: None)
    whole = SimpleNamespace(op_type="Whole", limits=(limit,), reference=reference, summary="s")
    broken = SimpleNamespace(op_type="Other", limits=(), reference=None, summary="")
    mute = SimpleNamespace(
        op_type="Mute", limits=(Condition(" ", lambda unit: None),), reference=reference, summary="s"
    )
    found = list(
        gaps(
            {"Whole": whole, "Broken": broken, "Mute": mute},
            {"Whole": 1, "Mute": 1, "Extra": 1},
            {"Whole", "Mute", "Odd"},
        )
    )
    assert found == [
        "Broken: its row says Other",
        "Broken: no limits",
        "Broken: no summary for the op table",
        "Broken: no numpy reference",
        "Broken: no TOSA lowering",
        "Broken: no cases in tests/ops",
        "Mute: a limit without its sentence",
        "Extra: a lowering without a row",
        "Odd: cases without a row",
    ]
