"""Conv: two-dimensional, dense or depthwise, weights constant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq.ops import contraction
from hexqdq.ops.contraction import ACTIVATION_TYPES, BIAS_TYPES, WEIGHT_TYPES, ContractionPlan
from hexqdq.ops.spec import (
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


def ints(unit: QuantUnit, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
    """A tuple attribute of integers."""
    value = unit.attributes.get(name, default)
    assert isinstance(value, tuple)
    return tuple(int(v) for v in value)


def group_of(unit: QuantUnit) -> int:
    group = unit.attributes.get("group", 1)
    assert isinstance(group, int)
    return group


def is_depthwise(unit: QuantUnit) -> bool:
    """Whether every input channel has filters of its own: group = input channels > 1."""
    return group_of(unit) == unit.input(0).shape[1] > 1


def plan(unit: QuantUnit) -> ContractionPlan:
    """The integer constants of a Conv; weights stay [out, in / group, height, width]."""
    return contraction.plan(unit, unit.constant(1))


def _windows(x: Array, unit: QuantUnit, zero_point: int) -> Array:
    """Padded input as windows [n, c, oh, ow, kh, kw]."""
    top, left, bottom, right = ints(unit, "pads", (0, 0, 0, 0))
    step_h, step_w = ints(unit, "strides", (1, 1))
    dilation_h, dilation_w = ints(unit, "dilations", (1, 1))
    kernel_h, kernel_w = unit.input(1).shape[2:]
    padded: Array = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=zero_point)
    span = ((kernel_h - 1) * dilation_h + 1, (kernel_w - 1) * dilation_w + 1)
    view: Array = np.lib.stride_tricks.sliding_window_view(padded, span, axis=(2, 3))  # type: ignore[call-overload]
    return view[:, :, ::step_h, ::step_w, ::dilation_h, ::dilation_w]


def reference(unit: QuantUnit, inputs: Sequence[Array]) -> list[Array]:
    """``clamp(rescale(sum((x - zp) * w) + bias) + zp)`` over zero-padded windows."""
    constants = plan(unit)
    windows = _windows(inputs[0], unit, constants.input_zero_point).astype(np.float64) - constants.input_zero_point
    batch, channels, height, width = windows.shape[:4]
    group = group_of(unit)
    outs = constants.weights.shape[0] // group
    weights = constants.weights.astype(np.float64).reshape(group, outs, -1)
    split = windows.reshape(batch, group, channels // group, height, width, *windows.shape[4:])
    columns = split.transpose(1, 0, 3, 4, 2, 5, 6).reshape(group, batch * height * width, -1)
    sums = np.matmul(columns, weights.transpose(0, 2, 1))
    accumulators = sums.reshape(group, batch, height, width, outs).transpose(1, 0, 4, 2, 3)
    flat = accumulators.reshape(batch, group * outs, height, width).astype(np.int64)
    return [contraction.finish(flat, constants, unit, 1)]


def macs(unit: QuantUnit) -> int:
    return unit.output.size * math.prod(unit.input(1).shape[1:])


def _dense_or_depthwise(unit: QuantUnit) -> str | None:
    group = group_of(unit)
    if group == 1 or is_depthwise(unit):
        return None
    return f"group {group} with {unit.input(0).shape[1]} input channels"


def _undilated(unit: QuantUnit) -> str | None:
    dilations = ints(unit, "dilations", (1, 1))
    return None if set(dilations) == {1} else f"dilations {dilations}"


def _padded_explicitly(unit: QuantUnit) -> str | None:
    auto_pad = unit.attributes.get("auto_pad", "NOTSET")
    return None if auto_pad == "NOTSET" else f"auto_pad {auto_pad}"


def _symmetric_weights(unit: QuantUnit) -> str | None:
    params = unit.input(1).params
    if params is None:
        return "weights without a scale"
    return None if params.is_symmetric else "weights with a zero point other than 0"


def _channels_first_axis(unit: QuantUnit) -> str | None:
    params = unit.input(1).params
    return None if params is None or params.axis in (None, 0) else f"axis {params.axis}"


SYMMETRIC_WEIGHTS = Condition("weights must have zero point 0", _symmetric_weights)

SPECS = (
    OpSpec(
        op_type="Conv",
        trait=Trait.CONTRACTION,
        limits=(
            RankIn(0, (4,)),
            DtypeIn(0, ACTIVATION_TYPES),
            DtypeIn(1, WEIGHT_TYPES),
            DtypeIn(2, BIAS_TYPES),
            DtypeIn(-1, ACTIVATION_TYPES),
            SameDtype(),
            PerTensor(0),
            PerTensor(-1),
            ConstInput(1),
            ConstInput(2),
            SYMMETRIC_WEIGHTS,
            Condition("weights must have one scale or one per output channel (axis 0)", _channels_first_axis),
            Condition("group must be 1 or the number of input channels", _dense_or_depthwise),
            Condition("dilations must be 1", _undilated),
            Condition("pads must be given as numbers", _padded_explicitly),
        ),
        reference=reference,
        check=plan,
        macs=macs,
        weight_axis=0,
        summary="two-dimensional convolution, dense or depthwise, any pads and strides",
    ),
)
