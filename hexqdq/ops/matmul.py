"""Gemm and MatMul with constant weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq.ops import contraction
from hexqdq.ops.contraction import ACTIVATION_TYPES, BIAS_TYPES, WEIGHT_TYPES, ContractionPlan
from hexqdq.ops.conv import SYMMETRIC_WEIGHTS
from hexqdq.ops.spec import (
    AttributeIn,
    Condition,
    ConstInput,
    DtypeIn,
    OpSpec,
    PerTensor,
    RankIn,
    SameDtype,
    Trait,
)
from hexqdq.ops.unit import QuantUnit

Array = NDArray[Any]


def _transposed(unit: QuantUnit) -> bool:
    return unit.op_type == "Gemm" and unit.attributes.get("transB", 0) == 1


def plan(unit: QuantUnit) -> ContractionPlan:
    """The integer constants; weights become [out, K]."""
    weights = unit.constant(1)
    return contraction.plan(unit, weights if _transposed(unit) else np.ascontiguousarray(weights.T))


def reference(unit: QuantUnit, inputs: Sequence[Array]) -> list[Array]:
    """``clamp(rescale((x - zp) @ w + bias) + zp)`` along the last axis."""
    constants = plan(unit)
    centred = inputs[0].astype(np.int64) - constants.input_zero_point
    accumulators = contraction.exact_matmul(centred, constants.weights.T)
    return [contraction.finish(accumulators, constants, unit, accumulators.ndim - 1)]


def macs(unit: QuantUnit) -> int:
    return unit.output.size * unit.input(0).shape[-1]


def _output_axis(unit: QuantUnit) -> str | None:
    params = unit.input(1).params
    expected = 0 if _transposed(unit) else 1
    return None if params is None or params.axis in (None, expected) else f"axis {params.axis}"


def _bias_per_channel(unit: QuantUnit) -> str | None:
    if not unit.has_input(2):
        return None
    size = unit.input(2).size
    shape = unit.input(2).shape
    per_channel = size in (1, unit.output.shape[-1]) and (size == 1 or shape[-1] == size)
    return None if per_channel else f"bias of shape {'x'.join(map(str, shape))}"


def _limits(*own: Condition | AttributeIn | RankIn) -> tuple[Any, ...]:
    return (
        DtypeIn(0, ACTIVATION_TYPES),
        DtypeIn(1, WEIGHT_TYPES),
        DtypeIn(2, BIAS_TYPES),
        DtypeIn(-1, ACTIVATION_TYPES),
        SameDtype(),
        PerTensor(0),
        PerTensor(-1),
        ConstInput(1),
        ConstInput(2),
        RankIn(1, (2,)),
        SYMMETRIC_WEIGHTS,
        Condition("weights must have one scale or one per output column", _output_axis),
        Condition("a bias must have one value or one per output column", _bias_per_channel),
        *own,
    )


SPECS = (
    OpSpec(
        op_type="Gemm",
        trait=Trait.CONTRACTION,
        limits=_limits(
            RankIn(0, (2,)), AttributeIn("alpha", (1.0,)), AttributeIn("beta", (1.0,)), AttributeIn("transA", (0,))
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
        limits=_limits(RankIn(0, (2, 3, 4))),
        reference=reference,
        check=plan,
        macs=macs,
        weight_axis=1,
        summary="matrix product with constant weights, a following Add of a constant vector as its bias",
    ),
)
