"""Functions of one 8-bit tensor by TABLE; units that follow each other on one tensor become one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq.compile.tosa import instructions
from hexqdq.compile.tosa.scope import Scope
from hexqdq.numerics import saturate, to_tosa
from hexqdq.ops import OPS
from hexqdq.ops.elementwise.table import table_plan
from hexqdq.ops.unit import QuantUnit, Tensor
from hexqdq.qtypes import QType

Array = NDArray[Any]

ACTIVATION_TYPES = (QType.U8, QType.S8)


@dataclass(frozen=True, eq=False)
class Origin:
    """A value as a function of ``source`` alone: its integer for every input from the lowest up; ``units`` deep."""

    source: Tensor
    values: Array
    units: int


def lower(unit: QuantUnit, scope: Scope) -> None:
    """``values[x]``."""
    _write(unit, scope, unit.input(0), saturate(table_plan(unit).values, unit.output.dtype))


def lower_origin(unit: QuantUnit, scope: Scope, origin: Origin) -> None:
    """The unit's output straight from its origin."""
    _write(unit, scope, origin.source, origin.values)


def _write(unit: QuantUnit, scope: Scope, source: Tensor, values: Array) -> None:
    order = scope.layouts.orders(source.name)[0]
    value = scope.layouts.get(source.name, order)
    entries = scope.builder.constant(to_tosa(values, unit.output.dtype))
    scope.layouts.set(unit.output.name, order, instructions.table(scope.builder, value, entries))


def origin_of(unit: QuantUnit, origins: Mapping[str, Origin]) -> Origin | None:
    """The unit's output as a function of one 8-bit tensor, None where it is none.

    The function is the unit's own reference on all 256 values of that tensor, so that a table in
    place of several units gives the very same integers.
    """
    variable = unit.variable_inputs()
    if not OPS[unit.op_type].pointwise or not variable or any(values.size != 1 for values in unit.constants.values()):
        return None
    if any(tensor.shape != unit.output.shape or tensor.dtype not in ACTIVATION_TYPES for tensor in variable):
        return None
    made = [origins.get(tensor.name) or _itself(tensor) for tensor in variable]
    if len({origin.source.name for origin in made}) != 1:
        return None
    (values,) = OPS[unit.op_type].reference(_on_line(unit), [origin.values for origin in made])
    units = 1 + sum(origin.units for origin in made)
    return Origin(made[0].source, values.astype(unit.output.dtype.numpy), units)


def is_better_as_table(unit: QuantUnit, origin: Origin) -> bool:
    """Whether a table takes the place of several units, or of arithmetic with constants."""
    return origin.units > 1 or (len(unit.inputs) > 1 and not OPS[unit.op_type].activation)


def _itself(tensor: Tensor) -> Origin:
    return Origin(tensor, np.arange(tensor.dtype.low, tensor.dtype.high + 1).astype(tensor.dtype.numpy), 0)


def _on_line(unit: QuantUnit) -> QuantUnit:
    """The unit on tensors of 256 elements."""

    def line(tensor: Tensor) -> Tensor:
        return replace(tensor, shape=(1,) if tensor.name in unit.constants else (256,))

    inputs = tuple(tensor and line(tensor) for tensor in unit.inputs)
    constants = {name: values.reshape(1) for name, values in unit.constants.items()}
    return replace(unit, inputs=inputs, outputs=tuple(map(line, unit.outputs)), constants=constants)
