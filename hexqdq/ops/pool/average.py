"""AveragePool: sums of windows in 32 bits with one RESCALE."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq import numerics
from hexqdq.errors import RescaleError
from hexqdq.numerics import Rescale
from hexqdq.ops.contraction import output_bounds, params_of
from hexqdq.ops.pool.window import LIMITS, SCALE_LIMITS, Span, spans_of, windows
from hexqdq.ops.spec import OpSpec, integers
from hexqdq.ops.traits import Trait
from hexqdq.ops.unit import QuantUnit

Array = NDArray[Any]

COMMON_BITS = 22
"""Where counts have no common multiple that fits 32 bits, sums are brought to one of this many bits."""
COUNT_ERROR = 1 / 16
"""Steps that doing so may move a mean."""


@dataclass(frozen=True, eq=False)
class AveragePlan:
    """Constants of ``clamp(rescale(sum(x - zp) * factors) + zp)``.

    ``factors`` int64 [outputs...] bring the sums of windows that hold fewer elements, as at the
    border, to one count; None where all hold as many.
    """

    spans: tuple[Span, ...]
    factors: NDArray[np.int64] | None
    rescale: Rescale
    input_zero_point: int
    output_zero_point: int
    low: int
    high: int


def average_plan(unit: QuantUnit) -> AveragePlan:
    """The integer constants; raises RescaleError outside TOSA's domain."""
    x, y = params_of(unit, 0), params_of(unit, -1)
    spans = spans_of(unit)
    counts = _counts(spans, include_pads=bool(unit.attributes.get("count_include_pad", 0)))
    factors, common = _common_count(unit, counts)
    bound = 255 * int((_counts(spans, include_pads=False) * (1 if factors is None else factors)).max())
    rescale = numerics.rescaler(unit.name, np.array([x.scale[0] / (y.scale[0] * common)]), np.array([bound]), y)
    low, high = output_bounds(unit)
    return AveragePlan(spans, factors, rescale, x.zero_point[0], y.zero_point[0], low, high)


def _counts(spans: Sequence[Span], *, include_pads: bool) -> NDArray[np.int64]:
    """Elements of every window [outputs...]."""
    counts = np.array(1, np.int64)
    for span in spans:
        counts = np.multiply.outer(counts, span.counts(include_pads))
    return counts


def _common_count(unit: QuantUnit, counts: NDArray[np.int64]) -> tuple[NDArray[np.int64] | None, int]:
    """What sums are multiplied by so that all count alike, and that count."""
    different = [int(count) for count in np.unique(counts)]
    if len(different) == 1:
        return None, different[0]
    common = math.lcm(*different)
    if 255 * common <= numerics.I32_MAX:
        return common // counts, common
    common = 1 << COMMON_BITS
    factors = numerics.nearest_quotients(common, counts)
    ratio = params_of(unit, 0).scale[0] / params_of(unit, -1).scale[0]
    error = float(np.max(np.abs(factors * counts - common))) / common * 255 * ratio
    if error > COUNT_ERROR:
        problem = f"windows of {different[0]} to {different[-1]} elements leave an error of {error:.3g} steps"
        raise RescaleError(unit.name, f"{problem}; expected at most {COUNT_ERROR}")
    return factors, common


def average_reference(unit: QuantUnit, inputs: Sequence[Array]) -> list[Array]:
    """Sums over the part of each window that lies in the input, to one count, one rounding."""
    constants = average_plan(unit)
    centred = integers(inputs[0]) - constants.input_zero_point
    axes = tuple(range(inputs[0].ndim, 2 * inputs[0].ndim - 2))
    sums = windows(centred, constants.spans, 0).sum(axis=axes)
    if constants.factors is not None:
        sums = sums * constants.factors
    bounds = (constants.low, constants.high)
    return [numerics.requantize(sums, constants.rescale, params_of(unit, -1), bounds)]


SPECS = (
    OpSpec(
        op_type="AveragePool",
        trait=Trait.ELEMENTWISE,
        limits=(*LIMITS, *SCALE_LIMITS),
        reference=average_reference,
        check=average_plan,
        summary="means of windows, pads counted or not",
    ),
)
