"""Functions of one 8-bit input as tables of 256 entries: single ops, and chains of them without Q in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq import numerics
from hexqdq.errors import RescaleError
from hexqdq.ops.contraction import output_bounds, params_of
from hexqdq.ops.elementwise.functions import UNARY, Function
from hexqdq.ops.elementwise.operands import UNARY_LIMITS
from hexqdq.ops.elementwise.program import Program
from hexqdq.ops.spec import OpSpec, integers
from hexqdq.ops.traits import Trait
from hexqdq.ops.unit import Attribute, QuantUnit
from hexqdq.qtypes import QuantParams

Array = NDArray[Any]

CHAIN = "Chain"
"""The op type of a unit whose attribute ``program`` holds a Program."""


@dataclass(frozen=True, eq=False)
class TablePlan:
    """``values`` int64 [256]: the output's integer for every input from ``first``, the lowest of its type, up."""

    values: NDArray[np.int64]
    first: int


def function_of(op_type: str, attributes: tuple[tuple[str, Attribute], ...]) -> Function:
    """The real function of a table op."""
    if op_type == CHAIN:
        return Program.from_text(str(dict(attributes)["program"]))
    return UNARY[op_type](dict(attributes))


@lru_cache(maxsize=1024)
def _table(
    op_type: str, attributes: tuple[tuple[str, Attribute], ...], source: QuantParams, result: QuantParams
) -> tuple[int, ...]:
    function = function_of(op_type, attributes)
    return tuple(int(value) for value in numerics.table(function, source, result))


def table_plan(unit: QuantUnit) -> TablePlan:
    """The table; raises RescaleError where the function has no value somewhere."""
    x, y = params_of(unit, 0), params_of(unit, -1)
    try:
        values = np.array(_table(unit.op_type, tuple(sorted(unit.attributes.items())), x, y), np.int64)
    except ZeroDivisionError as error:
        raise RescaleError(unit.name, "divides by zero; expected a value for every input") from error
    return TablePlan(np.asarray(numerics.bounded(values, output_bounds(unit))), x.dtype.low)


def table_reference(unit: QuantUnit, inputs: Sequence[Array]) -> list[Array]:
    """``values[x - first]``."""
    constants = table_plan(unit)
    return [constants.values[integers(inputs[0]) - constants.first]]


def _row(op_type: str, trait: Trait, summary: str, fixed_output: tuple[float, int] | None = None) -> OpSpec:
    return OpSpec(
        op_type=op_type,
        trait=trait,
        limits=UNARY_LIMITS,
        reference=table_reference,
        check=table_plan,
        pointwise=True,
        fixed_output=fixed_output,
        summary=f"{summary}; a table of 256 correctly rounded entries",
    )


SPECS = (
    _row("Sigmoid", Trait.FIXED_RANGE, "logistic function", (1 / 256, 0)),
    _row("HardSigmoid", Trait.FIXED_RANGE, "line between 0 and 1", (1 / 256, 0)),
    _row("HardSwish", Trait.ELEMENTWISE, "input times a line between 0 and 1"),
    _row("Tanh", Trait.FIXED_RANGE, "hyperbolic tangent", (1 / 128, 128)),
    _row("LeakyRelu", Trait.ELEMENTWISE, "values below 0 times one slope"),
    _row("Exp", Trait.ELEMENTWISE, "e to the power of the input"),
    _row("Abs", Trait.ELEMENTWISE, "magnitude"),
    _row("Neg", Trait.ELEMENTWISE, "the input below 0 and above it exchanged"),
    _row(CHAIN, Trait.ELEMENTWISE, "functions of one input and constants between one DQ and one Q"),
)
