"""Both sides of every limit: the ladder's cases are accepted and lower, a unit changed in one thing is refused."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from hexqdq.compile.tosa import lower_segment
from hexqdq.ops import OPS
from hexqdq.ops.spec import AttributeIn, ConstInput, DtypeIn, Limit, PerTensor, RankIn, SameDtype
from hexqdq.ops.unit import QuantUnit, Tensor
from hexqdq.qtypes import QType, QuantParams
from tests.ops.cases import RELU6, Case
from tests.ops.ladder import TARGET

FOLDER = Path(__file__).parent.parent
FAMILIES = tuple(importlib.import_module(f"tests.ops.{path.stem}") for path in sorted(FOLDER.glob("test_*.py")))
ACCEPTED: tuple[Case, ...] = tuple(case for family in FAMILIES for case in getattr(family, "CASES", ()))
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


def _grown(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size + 97 for size in shape)


def _constant(index: int, number: int) -> Callable[[QuantUnit], QuantUnit]:
    """A constant input with one number everywhere."""

    def changed(unit: QuantUnit) -> QuantUnit:
        name = unit.input(index).name
        return replace(unit, constants={**unit.constants, name: np.full_like(unit.constants[name], number)})

    return changed


def _far_zero_points(unit: QuantUnit) -> QuantUnit:
    """Weights at both ends of their type over zero points at both ends: 511 integers."""
    values = np.full(unit.input(1).shape, 127, np.int8)
    axis = 0 if unit.op_type == "Conv" or unit.attributes.get("transB") else 1
    first = (slice(None),) * axis + (0,)
    values[first] = -128
    zero_points = np.full(values.shape[axis], -128)
    zero_points[0] = 127
    params = QuantParams.per_channel(QType.S8, np.full(len(zero_points), 0.1, np.float32), zero_points, axis)
    changed = _with(unit, 1, replace(unit.input(1), dtype=QType.S8, params=params))
    return replace(changed, constants={**unit.constants, unit.input(1).name: values})


def _computed_weights(unit: QuantUnit) -> QuantUnit:
    """A right-hand side of several scales that no constant gives."""
    changed = _replaced(1, params=_parameters(2, axis=1))(unit)
    return replace(changed, constants={})


CONDITIONS: Mapping[str, Callable[[QuantUnit], QuantUnit]] = {
    "weights must have one scale or one per output channel (axis 0)": _replaced(1, params=_parameters(4, axis=1)),
    "weights must have one scale or one per output channel (axis 1)": _replaced(1, params=_parameters(4, axis=0)),
    "weights must have one scale or one per output column": _replaced(1, params=_parameters(4, axis=2)),
    "weights less their zero points must lie within 256 integers": _far_zero_points,
    "a computed or batched right-hand side must have one scale": _computed_weights,
    "pads must be given as numbers": _attribute("auto_pad", "SAME_UPPER"),
    "pads must not be negative": _attribute("pads", (0, -1, 0, 0)),
    "the input must reach the output": _attribute("pads", (99, 0, 0, 0)),
    "every window must reach into the input": _attribute("pads", (99, 0, 0, 0)),
    "a pool's dilations must be 1": _attribute("dilations", (2, 1)),
    "a bias must have one value or one per output column": _replaced(2, shape=(3, 2)),
    "the softmax axis must have 1 to 65536 elements": _replaced(0, shape=(1, 65537)),
    "the axis of ArgMax must have 1 to 8388608 elements": _replaced(0, shape=((1 << 23) + 1,) * 4),
    "the slopes must broadcast to input 0": _replaced(1, shape=(2, 99, 1, 1)),
    "input and output must share scale and zero point": _replaced(OUTPUT, params=_parameters(1)),
    "data must have one scale and zero point a tensor": _replaced(0, params=_parameters(2, axis=0)),
    "tensors must hold at least one element": _replaced(0, shape=(0,)),
    "no activation may stand between a data movement and its QuantizeLinear": lambda unit: replace(unit, clamp=RELU6),
    "inputs, constants too, and the output must have one type": _replaced(0, dtype=QType.S16),
    "inputs and output must all be quantized, or all bare integers": _replaced(0, params=None),
    "negative pads must leave elements on every axis": _constant(1, -99),
    "nearest copies: input and output must share scale and zero point": _replaced(OUTPUT, params=_parameters(1)),
    "linear needs quantized data": _replaced(0, params=None),
    "linear resizes at most two axes": lambda unit: _replaced(OUTPUT, shape=_grown(unit.output.shape))(unit),
    "input 0 must have one scale and zero point": _replaced(0, params=_parameters(2, axis=0)),
}
"""For limits of one op, a change that breaks them."""


def broken(unit: QuantUnit, limit: Limit) -> QuantUnit:
    """The unit changed in the one thing that the limit is about."""
    if isinstance(limit, DtypeIn):
        other = QType.S64 if QType.S64 not in limit.types else QType.S32
        return _replaced(limit.index, dtype=other)(unit)
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
    change = CONDITIONS.get(limit.sentence)
    assert change is not None, f"CONDITIONS says nothing that breaks: {limit.sentence}"
    return change(unit)


WITH_CASES = {case.op_type for case in ACCEPTED}
LIMITS = tuple((name, limit) for name, spec in OPS.items() if name in WITH_CASES for limit in spec.limits)
"""tests/architecture/test_op_rows.py names the ops without cases."""


@pytest.mark.parametrize("case", ACCEPTED, ids=str)
def test_an_accepted_unit_lowers(case: Case) -> None:
    (unit,) = case.graph.units
    assert OPS[unit.op_type].refusal(unit, TARGET) is None
    assert lower_segment(case.graph).text


@pytest.mark.parametrize(("op_type", "limit"), LIMITS, ids=lambda part: getattr(part, "sentence", part))
def test_a_broken_limit_refuses(op_type: str, limit: Limit) -> None:
    units = [case.graph.units[0] for case in ACCEPTED if case.op_type == op_type]
    assert all(limit.violation(unit, TARGET) is None for unit in units)
    changed = next((unit for unit in map(partial(broken, limit=limit), units) if limit.violation(unit, TARGET)), None)
    assert changed is not None, f"CONDITIONS breaks in no case: {limit.sentence}"
    assert OPS[op_type].refusal(changed, TARGET) is not None


def test_no_condition_is_stale() -> None:
    assert set(CONDITIONS) <= {limit.sentence for spec in OPS.values() for limit in spec.limits}


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
