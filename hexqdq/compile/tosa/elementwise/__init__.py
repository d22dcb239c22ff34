"""Lowerings of the elementwise ops."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hexqdq.compile.tosa.elementwise import arithmetic, tables
from hexqdq.compile.tosa.scope import Scope
from hexqdq.ops.elementwise import table
from hexqdq.ops.unit import QuantUnit

LOWERINGS: Mapping[str, Callable[[QuantUnit, Scope], None]] = {
    "Add": arithmetic.lower_sum,
    "Sub": arithmetic.lower_sum,
    "Mul": arithmetic.lower_product,
    "PRelu": arithmetic.lower_slopes,
    "Relu": arithmetic.lower_clip,
    "Clip": arithmetic.lower_clip,
    **{spec.op_type: tables.lower for spec in table.SPECS},
}
