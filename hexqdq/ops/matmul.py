"""Gemm and MatMul with constant weights, and MatMul of two activations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq import numerics
from hexqdq.numerics import Rescale
from hexqdq.ops import contraction
from hexqdq.ops.contraction import ACTIVATION_TYPES, BIAS_TYPES, WEIGHT_TYPES, ContractionPlan
from hexqdq.ops.conv import WEIGHT_SPAN
from hexqdq.ops.spec import (
    AttributeIn,
    Condition,
    ConstInput,
    DtypeIn,
    Limit,
    OpSpec,
    PerTensor,
    RankIn,
    SameDtype,
)
from hexqdq.ops.traits import Trait
from hexqdq.ops.unit import QuantUnit

Array = NDArray[Any]


def has_weights(unit: QuantUnit) -> bool:
    """Whether input 1 is a constant matrix, which every row meets."""
    return unit.is_constant(1) and not unit.is_constant(0) and len(unit.input(1).shape) == 2


def _transposed(unit: QuantUnit) -> bool:
    return unit.op_type == "Gemm" and unit.attributes.get("transB", 0) == 1


def plan(unit: QuantUnit) -> ContractionPlan:
    """The integer constants with weights, which become [out, K]."""
    weights = unit.constant(1)
    return contraction.plan(unit, weights if _transposed(unit) else np.ascontiguousarray(weights.T))


@dataclass(frozen=True, eq=False)
class ProductPlan:
    """Integer constants of ``clamp(rescale((a - left) @ (b - right) + bias) + zp)``.

    ``bias`` is int64 [1] or [columns]; zero points and bounds are in the types of the unit's tensors.
    """

    left_zero_point: int
    right_zero_point: int
    bias: NDArray[np.int64]
    rescale: Rescale
    output_zero_point: int
    low: int
    high: int


def product_plan(unit: QuantUnit) -> ProductPlan:
    """The integer constants of a product of two activations, of which one may be constant."""
    a, b, y = (contraction.params_of(unit, index) for index in (0, 1, -1))
    scale = np.array([a.scale[0] * b.scale[0]], np.float64)
    columns = unit.output.shape[-1] if len(unit.input(1).shape) > 1 else 1
    bias = contraction.bias_of(unit, np.broadcast_to(scale, (columns,)))
    reach = unit.input(0).shape[-1] * contraction.reach_of(a) * contraction.reach_of(b)
    bounds = np.array([reach + np.abs(bias).max(initial=0)])
    rescale = numerics.rescaler(unit.name, scale / y.scale[0], bounds, y)
    low, high = contraction.output_bounds(unit)
    return ProductPlan(a.zero_point[0], b.zero_point[0], bias, rescale, y.zero_point[0], low, high)


def check(unit: QuantUnit) -> ContractionPlan | ProductPlan:
    """Whichever plan the unit has."""
    return plan(unit) if has_weights(unit) else product_plan(unit)


def reference(unit: QuantUnit, inputs: Sequence[Array]) -> list[Array]:
    """``clamp(rescale((x - zp) @ (w - zp_w) + bias) + zp)`` along the last axis."""
    if not has_weights(unit):
        return [_product(unit, inputs)]
    constants = plan(unit)
    centred = inputs[0].astype(np.int64) - constants.input_zero_point
    accumulators = contraction.exact_matmul(centred, constants.centred.T)
    return [contraction.finish(accumulators, constants, unit, accumulators.ndim - 1)]


def _product(unit: QuantUnit, inputs: Sequence[Array]) -> Array:
    constants = product_plan(unit)
    variable = iter(inputs)
    left, right = (unit.constant(index) if unit.is_constant(index) else next(variable) for index in (0, 1))
    sums = contraction.exact_matmul(
        left.astype(np.int64) - constants.left_zero_point, right.astype(np.int64) - constants.right_zero_point
    )
    bounds = (constants.low, constants.high)
    return numerics.requantize(sums + constants.bias, constants.rescale, contraction.params_of(unit, -1), bounds)


def macs(unit: QuantUnit) -> int:
    return unit.output.size * unit.input(0).shape[-1]


def _of_weights(test: Callable[[QuantUnit], str | None]) -> Callable[[QuantUnit], str | None]:
    """A test that products of activations pass."""
    return lambda unit: test(unit) if has_weights(unit) else None


def _output_axis(unit: QuantUnit) -> str | None:
    params = unit.input(1).params
    expected = 0 if _transposed(unit) else 1
    return None if params is None or params.axis in (None, expected) else f"axis {params.axis}"


def _one_scale(unit: QuantUnit) -> str | None:
    params = unit.input(1).params
    if has_weights(unit) or (params is not None and params.is_per_tensor):
        return None
    return f"{len(params.scale) if params else 'no'} scales on {unit.input(1).name!r}"


def _bias_per_channel(unit: QuantUnit) -> str | None:
    if not unit.has_input(2):
        return None
    size = unit.input(2).size
    shape = unit.input(2).shape
    per_channel = size in (1, unit.output.shape[-1]) and (size == 1 or shape[-1] == size)
    return None if per_channel else f"bias of shape {'x'.join(map(str, shape))}"


def _limits(*own: Limit) -> tuple[Limit, ...]:
    return (
        DtypeIn(0, ACTIVATION_TYPES),
        DtypeIn(1, WEIGHT_TYPES),
        DtypeIn(2, BIAS_TYPES),
        DtypeIn(-1, ACTIVATION_TYPES),
        SameDtype(),
        PerTensor(0),
        PerTensor(-1),
        ConstInput(2),
        Condition("weights must have one scale or one per output column", _of_weights(_output_axis)),
        Condition(WEIGHT_SPAN.sentence, _of_weights(WEIGHT_SPAN.test)),
        Condition("a bias must have one value or one per output column", _bias_per_channel),
        *own,
    )


SPECS = (
    OpSpec(
        op_type="Gemm",
        trait=Trait.CONTRACTION,
        limits=_limits(
            ConstInput(1),
            RankIn(0, (2,)),
            AttributeIn("alpha", (1.0,)),
            AttributeIn("beta", (1.0,)),
            AttributeIn("transA", (0,)),
        ),
        reference=reference,
        check=plan,
        macs=macs,
        weight_axis=1,
        summary="matrix product with constant weights and bias",
    ),
    OpSpec(
        op_type="MatMul",
        trait=Trait.CONTRACTION,
        limits=_limits(
            RankIn(0, (2, 3, 4)),
            RankIn(1, (2, 3, 4)),
            Condition("a computed or batched right-hand side must have one scale", _one_scale),
        ),
        reference=reference,
        check=check,
        macs=macs,
        weight_axis=1,
        summary="matrix product with constant weights or of two computed tensors, batched; "
        "a following Add of a constant vector is its bias",
    ),
)
