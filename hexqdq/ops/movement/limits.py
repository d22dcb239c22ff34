"""What every data movement demands of its tensors."""

from __future__ import annotations

from hexqdq.ops.contraction import ACTIVATION_TYPES
from hexqdq.ops.spec import Condition, DtypeIn, Limit, SameDtype
from hexqdq.ops.unit import QuantUnit, Tensor


def scales_differ(source: Tensor, result: Tensor) -> str | None:
    """Two tensors' scales where their parameters are not the same; bare integers have none to compare."""
    before, after = source.params, result.params
    if before is None or after is None or before == after:
        return None
    return (
        f"scale {before.scale[0]:.6g} and zero point {before.zero_point[0]} in,"
        f" {after.scale[0]:.6g} and {after.zero_point[0]} out"
    )


def _same_parameters(unit: QuantUnit) -> str | None:
    found = (scales_differ(unit.input(0), output) for output in unit.outputs)
    return next((sentence for sentence in found if sentence is not None), None)


def _per_tensor(unit: QuantUnit) -> str | None:
    tensors = (*unit.variable_inputs(), *unit.outputs)
    many = (t.params for t in tensors if t.params is not None and not t.params.is_per_tensor)
    return next((f"{len(params.scale)} scales" for params in many), None)


def _activation(unit: QuantUnit) -> str | None:
    return None if unit.clamp is None else f"bounds {unit.clamp.low:g} to {unit.clamp.high:g}"


def _empty(unit: QuantUnit) -> str | None:
    empty = (t for t in (*unit.variable_inputs(), *unit.outputs) if not t.size)
    return next((f"{tensor.name!r} of shape {'x'.join(map(str, tensor.shape))}" for tensor in empty), None)


DATA_LIMITS: tuple[Limit, ...] = (
    DtypeIn(0, ACTIVATION_TYPES),
    SameDtype(),
    Condition("data must have one scale and zero point a tensor", _per_tensor),
    Condition("tensors must hold at least one element", _empty),
)
"""Of every movement."""

LIMITS: tuple[Limit, ...] = (
    *DATA_LIMITS,
    Condition("input and output must share scale and zero point", _same_parameters),
    Condition("no activation may stand between a data movement and its QuantizeLinear", _activation),
)
"""Of movements that copy integers and change none."""
