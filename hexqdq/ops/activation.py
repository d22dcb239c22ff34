"""Softmax as an integer program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq import numerics
from hexqdq.numerics import Rescale
from hexqdq.ops.contraction import ACTIVATION_TYPES, output_bounds, params_of
from hexqdq.ops.spec import Condition, DtypeIn, OpSpec, PerTensor, SameDtype, axis_of, integers
from hexqdq.ops.traits import Trait
from hexqdq.ops.unit import QuantUnit

Array = NDArray[Any]

ROW_MAX = 1 << 16
"""Longest softmax row: exponentials keep at least 14 bits while their sum stays within 2**30."""


@dataclass(frozen=True, eq=False)
class SoftmaxPlan:
    """Constants of the integer softmax along ``axis``; see ``softmax_reference``.

    ``table`` is int64 [256] below 2**31. Error: at most 1 step at 8 bits against real arithmetic.
    """

    axis: int
    table: NDArray[np.int64]
    table_bits: int
    rescale: Rescale
    output_zero_point: int
    low: int
    high: int

    @property
    def narrow_shift(self) -> int:
        """Right shift that brings an exponential to 14 bits."""
        return self.table_bits - 14

    @property
    def probability_shift(self) -> int:
        """``probability_shift - leading zeros of the sum`` is the last right shift."""
        return 45 - self.table_bits


def softmax_plan(unit: QuantUnit) -> SoftmaxPlan:
    """The integer constants; raises RescaleError where the output scale leaves TOSA's domain."""
    axis = axis_of(unit, -1)
    length = unit.input(0).shape[axis]
    bits = min(24, 30 - math.ceil(math.log2(max(length, 1))))
    x, y = params_of(unit, 0), params_of(unit, -1)
    rescale = numerics.rescaler(unit.name, np.array([2.0**-16 / y.scale[0]]), np.array([1 << 16]), y)
    low, high = output_bounds(unit)
    table = numerics.exp_table(x.scale[0], bits)
    return SoftmaxPlan(axis, table, bits, rescale, y.zero_point[0], low, high)


def softmax_reference(unit: QuantUnit, inputs: Sequence[Array]) -> list[Array]:
    """Integer softmax, one division a row.

    ``e = table[max - x]``; ``r, c = reciprocal(sum(e))``; ``p = (narrow(e) * r) >> (45 - bits - c)``
    rounded is the probability times 2**16; RESCALE to the output's scale.
    """
    constants = softmax_plan(unit)
    axis = constants.axis
    values = integers(inputs[0])
    exponentials = constants.table[values.max(axis=axis, keepdims=True) - values]
    total = exponentials.sum(axis=axis, keepdims=True)
    reciprocal, zeros = numerics.reciprocal(total)
    narrow = numerics.rounding_shift(exponentials, constants.narrow_shift)
    wide = numerics.rounding_shift(narrow * reciprocal, constants.probability_shift - zeros)
    bounds = (constants.low, constants.high)
    return [numerics.requantize(wide, constants.rescale, params_of(unit, -1), bounds)]


def _row_length(unit: QuantUnit) -> str | None:
    length = unit.input(0).shape[axis_of(unit, -1)]
    return None if 1 <= length <= ROW_MAX else f"{length} elements"


SPECS = (
    OpSpec(
        op_type="Softmax",
        trait=Trait.FIXED_RANGE,
        limits=(
            DtypeIn(0, ACTIVATION_TYPES),
            DtypeIn(-1, ACTIVATION_TYPES),
            SameDtype(),
            PerTensor(0),
            PerTensor(-1),
            Condition("the softmax axis must have 1 to 65536 elements", _row_length),
        ),
        reference=softmax_reference,
        check=softmax_plan,
        fixed_output=(1 / 256, 0),
        summary="integer program: exponential table, one reciprocal a row; at most 1 step from real arithmetic",
    ),
)
