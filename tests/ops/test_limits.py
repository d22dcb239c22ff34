"""Both sides of every limit: the ladder's cases are accepted and lower, a unit changed in one thing is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from hexqdq.compile.tosa import lower_segment
from hexqdq.ops import OPS
from hexqdq.ops.spec import AttributeIn, ConstInput, DtypeIn, Limit, PerTensor, RankIn, SameDtype
from hexqdq.ops.unit import QuantUnit, Tensor
from hexqdq.qtypes import QType, QuantParams
from tests.ops import (
    test_activation,
    test_conv,
    test_elementwise,
    test_matmul,
    test_movement,
    test_pool,
    test_resize,
    test_shape,
)
from tests.ops.cases import RELU, Case
from tests.ops.ladder import TARGET

FAMILIES = (
    test_activation,
    test_conv,
    test_elementwise,
    test_matmul,
    test_movement,
    test_pool,
    test_resize,
    test_shape,
)
ACCEPTED: tuple[Case, ...] = tuple(case for family in FAMILIES for case in family.CASES)
OUTPUT = -1


def _with(unit: QuantUnit, index: int, tensor: Tensor) -> QuantUnit:
    """The unit with another tensor at an input position, its output for -1."""
    if index == OUTPUT:
        return replace(unit, outputs=(tensor, *unit.outputs[1:]))
    inputs = [*unit.inputs, *[None] * (index + 1 - len(unit.inputs))]
    inputs[index] = tensor
    return replace(unit, inputs=tuple(inputs))


def _at(unit: QuantUnit, index: int) -> Tensor:
    """The tensor at a position; a scalar where the base unit has none."""
    if index == OUTPUT:
        return unit.outputs[0]
    return unit.input(index) if unit.has_input(index) else Tensor("extra", (), QType.F32)


def _parameters(count: int, zero_point: int = 0, axis: int | None = None) -> QuantParams:
    if axis is None:
        return QuantParams.per_tensor(QType.S8, 0.5, zero_point)
    scales = np.linspace(0.1, 0.2, count).astype(np.float32)
    return QuantParams.per_channel(QType.S8, scales, np.full(count, zero_point), axis)


def _attribute(name: str, value: int | float | str | tuple[int, ...]) -> Callable[[QuantUnit], QuantUnit]:
    return lambda unit: replace(unit, attributes={**unit.attributes, name: value})


def _replaced(index: int, **changes: object) -> Callable[[QuantUnit], QuantUnit]:
    return lambda unit: _with(unit, index, replace(_at(unit, index), **changes))  # type: ignore[arg-type]


def _linear(index: int, **changes: object) -> Callable[[QuantUnit], QuantUnit]:
    """A Resize that weighs, with a tensor changed."""
    return lambda unit: _attribute("mode", "linear")(_replaced(index, **changes)(unit))


CONDITIONS: Mapping[str, Callable[[QuantUnit], QuantUnit]] = {
    "weights must have zero point 0": _replaced(1, params=_parameters(1, zero_point=3)),
    "weights must have one scale or one per output channel (axis 0)": _replaced(1, params=_parameters(4, axis=1)),
    "weights must have one scale or one per output column": _replaced(1, params=_parameters(4, axis=2)),
    "group must be 1 or the number of input channels": _attribute("group", 2),
    "dilations must be 1": _attribute("dilations", (2, 1)),
    "pads must be given as numbers": _attribute("auto_pad", "SAME_UPPER"),
    "a bias must have one value or one per output column": _replaced(2, shape=(3, 2)),
    "the softmax axis must have 1 to 65536 elements": _replaced(0, shape=(1, 65537)),
    "the kernel must cover the whole input without pads": _attribute("kernel_shape", (2, 2)),
    "input and output must share scale and zero point": _replaced(OUTPUT, params=_parameters(1)),
    "input 0 must have one scale and zero point": _replaced(0, params=_parameters(2, axis=0)),
    "data must have one scale and zero point a tensor": _replaced(0, params=_parameters(2, axis=0)),
    "tensors must hold at least one element": _replaced(OUTPUT, shape=(0, 2)),
    "no activation may stand between a data movement and its QuantizeLinear": lambda unit: replace(unit, clamp=RELU),
    "inputs, constants too, and the output must have one type": _replaced(0, dtype=QType.S8),
    "inputs and output must all be quantized, or all bare integers": _replaced(0, params=None),
    "negative pads must leave elements on every axis": lambda unit: replace(
        unit, constants={"pads": np.array((0, 0, -2, 0, 0, 0, -2, 0))}
    ),
    "nearest copies: input and output must share scale and zero point": _replaced(OUTPUT, params=_parameters(1)),
    "linear needs quantized data": _linear(0, params=None),
    "linear resizes at most two axes": _linear(OUTPUT, shape=(2, 2, 2, 2)),
}
"""For limits of one op, a change that breaks them."""


def broken(unit: QuantUnit, limit: Limit) -> QuantUnit:
    """The unit changed in the one thing that the limit is about."""
    if isinstance(limit, DtypeIn):
        return _replaced(limit.index, dtype=QType.S64)(unit)
    if isinstance(limit, RankIn):
        return _replaced(limit.index, shape=(1,) * (max(limit.ranks) + 1))(unit)
    if isinstance(limit, PerTensor):
        return _replaced(limit.index, params=_parameters(2, axis=0))(unit)
    if isinstance(limit, ConstInput):
        return replace(_with(unit, limit.index, _at(unit, limit.index)), constants={})
    if isinstance(limit, AttributeIn):
        return _attribute(limit.name, "other")(unit)
    if isinstance(limit, SameDtype):
        return _replaced(OUTPUT, dtype=QType.S16)(unit)
    return CONDITIONS[limit.sentence](unit)


LIMITS = tuple((op_type, limit) for op_type, spec in OPS.items() for limit in spec.limits)


@pytest.mark.parametrize("case", ACCEPTED, ids=str)
def test_an_accepted_unit_lowers(case: Case) -> None:
    (unit,) = case.graph.units
    assert OPS[unit.op_type].refusal(unit, TARGET) is None
    assert lower_segment(case.graph).text


@pytest.mark.parametrize(("op_type", "limit"), LIMITS, ids=lambda part: getattr(part, "sentence", part))
def test_a_broken_limit_refuses(op_type: str, limit: Limit) -> None:
    unit = next(case.graph.units[0] for case in ACCEPTED if case.op_type == op_type)
    changed = broken(unit, limit)
    assert limit.violation(unit, TARGET) is None
    assert limit.violation(changed, TARGET) is not None
    assert OPS[op_type].refusal(changed, TARGET) is not None


def _rescaled(unit: QuantUnit, scale: float) -> QuantUnit:
    params = QuantParams.per_tensor(unit.output.dtype, scale, 0)
    return _replaced(OUTPUT, params=params)(unit)


@pytest.mark.parametrize(
    ("op_type", "scale", "sentence"),
    [
        ("Conv", 1e-12, "needs shift"),
        ("MatMul", 1e-12, "needs shift"),
        ("GlobalAveragePool", 1e-9, "needs shift"),
        ("Relu", 1e-9, "needs shift"),
        ("Add", 1e-6, "leave an error of"),
        ("Softmax", 1e-12, "needs shift"),
    ],
)
def test_scales_outside_tosa_are_refused(op_type: str, scale: float, sentence: str) -> None:
    unit = next(case.graph.units[0] for case in ACCEPTED if case.op_type == op_type)
    refusal = OPS[op_type].refusal(_rescaled(unit, scale), TARGET)
    assert refusal is not None and refusal.startswith(unit.name) and sentence in refusal
