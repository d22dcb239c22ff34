"""GlobalAveragePool, and AveragePool that covers its input."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from hexqdq.ops.contraction import ACTIVATION_TYPES
from hexqdq.ops.conv import ints
from hexqdq.ops.elementwise import RequantizePlan, requantize_plan, requantize_reference
from hexqdq.ops.spec import Condition, DtypeIn, OpSpec, PerTensor, RankIn, SameDtype, Trait, integers
from hexqdq.ops.unit import QuantUnit

Array = NDArray[Any]


def plan(unit: QuantUnit) -> RequantizePlan:
    """The mean over all positions as a sum with one RESCALE; ``input_zero_point`` is per element."""
    return requantize_plan(unit, positions(unit))


def positions(unit: QuantUnit) -> int:
    """Number of elements in a channel."""
    return math.prod(unit.input(0).shape[2:])


def reference(unit: QuantUnit, inputs: Sequence[Array]) -> list[Array]:
    """``clamp(rescale(sum(x - zp)) + zp)`` over the spatial axes."""
    constants = plan(unit)
    axes = tuple(range(2, inputs[0].ndim))
    total = (integers(inputs[0]) - constants.input_zero_point).sum(axis=axes, keepdims=True)
    return [requantize_reference(constants, total + constants.input_zero_point, unit)]


def _covers_input(unit: QuantUnit) -> str | None:
    kernel = ints(unit, "kernel_shape", ())
    shape = unit.input(0).shape[2:]
    pads = ints(unit, "pads", (0,) * (2 * len(shape)))
    if kernel == shape and not any(pads) and unit.output.shape[2:] == (1,) * len(shape):
        return None
    return f"kernel {kernel} with pads {pads} on {'x'.join(map(str, shape))}"


_LIMITS = (
    RankIn(0, (4,)),
    DtypeIn(0, ACTIVATION_TYPES),
    DtypeIn(-1, ACTIVATION_TYPES),
    SameDtype(),
    PerTensor(0),
    PerTensor(-1),
)

SPECS = (
    OpSpec(
        op_type="GlobalAveragePool",
        trait=Trait.ELEMENTWISE,
        limits=_LIMITS,
        reference=reference,
        check=plan,
        summary="mean of each channel",
    ),
    OpSpec(
        op_type="AveragePool",
        trait=Trait.ELEMENTWISE,
        limits=(*_LIMITS, Condition("the kernel must cover the whole input without pads", _covers_input)),
        reference=reference,
        check=plan,
        summary="mean of each channel where the kernel covers the input",
    ),
)
