"""Conv and ConvTranspose over one or two dimensions, weights constant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq.ops import contraction
from hexqdq.ops.contraction import ACTIVATION_TYPES, BIAS_TYPES, WEIGHT_TYPES, ContractionPlan
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
Pair = tuple[int, int]


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


@dataclass(frozen=True)
class Window:
    """How a kernel moves over height and width; an operation over one dimension has height 1.

    ``pads`` are in ONNX's order: top, left, bottom, right.
    """

    kernel: Pair
    strides: Pair
    dilations: Pair
    pads: tuple[int, int, int, int]

    @property
    def spans(self) -> Pair:
        """Input rows and columns from the first to the last that one position reads."""
        height, width = ((size - 1) * step + 1 for size, step in zip(self.kernel, self.dilations, strict=True))
        return height, width


def window_of(unit: QuantUnit) -> Window:
    """The window of a Conv or ConvTranspose."""
    kernel = unit.input(1).shape[2:]
    pads = ints(unit, "pads", (0,) * (2 * len(kernel)))
    before, after = pads[: len(kernel)], pads[len(kernel) :]
    top, bottom = _planar(before, 0), _planar(after, 0)
    return Window(
        _planar(kernel, 1),
        _planar(ints(unit, "strides", (1,) * len(kernel)), 1),
        _planar(ints(unit, "dilations", (1,) * len(kernel)), 1),
        (*top, *bottom),
    )


def _planar(sizes: tuple[int, ...], missing: int) -> Pair:
    """Sizes along one or two dimensions as along two."""
    height, width = (missing,) * (2 - len(sizes)) + sizes
    return height, width


def planar_shape(shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    """[N, C, W] or [N, C, H, W] as [N, C, H, W]."""
    return (shape[0], shape[1], *_planar(shape[2:], 1))


def plan(unit: QuantUnit) -> ContractionPlan:
    """The integer constants of a Conv; weights are [out, in / group, height, width]."""
    weights = unit.constant(1)
    return contraction.plan(unit, weights.reshape(planar_shape(weights.shape)))


def _windows(x: Array, window: Window, fill: int) -> Array:
    """Padded input as windows [n, c, oh, ow, kh, kw]."""
    top, left, bottom, right = window.pads
    padded: Array = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)
    view: Array = np.lib.stride_tricks.sliding_window_view(  # type: ignore[call-overload]
        padded, window.spans, axis=(2, 3)
    )
    (step_h, step_w), (dilation_h, dilation_w) = window.strides, window.dilations
    return view[:, :, ::step_h, ::step_w, ::dilation_h, ::dilation_w]


def reference(unit: QuantUnit, inputs: Sequence[Array]) -> list[Array]:
    """``clamp(rescale(sum((x - zp) * (w - zp_w)) + bias) + zp)`` over zero-padded windows."""
    constants = plan(unit)
    x = inputs[0].reshape(planar_shape(inputs[0].shape)).astype(np.float64) - constants.input_zero_point
    sums = window_sums(_windows(x, window_of(unit), 0), constants.centred.astype(np.float64), group_of(unit))
    return [contraction.finish(sums, constants, unit, 1).reshape(unit.output.shape)]


def window_sums(windows: Array, weights: Array, group: int) -> NDArray[np.int64]:
    """Products summed over windows [n, c, oh, ow, kh, kw] of integers: [n, out, oh, ow], exact below 2**53."""
    batch, channels, height, width = windows.shape[:4]
    outs = weights.shape[0] // group
    split = windows.reshape(batch, group, channels // group, height, width, *windows.shape[4:])
    columns = split.transpose(1, 0, 3, 4, 2, 5, 6).reshape(group, batch * height * width, -1)
    sums = np.matmul(columns, weights.reshape(group, outs, -1).transpose(0, 2, 1))
    planes = sums.reshape(group, batch, height, width, outs).transpose(1, 0, 4, 2, 3)
    return np.asarray(planes.reshape(batch, group * outs, height, width), np.int64)


def macs(unit: QuantUnit) -> int:
    return unit.output.size * math.prod(unit.input(1).shape[1:])


def transposed_plan(unit: QuantUnit) -> ContractionPlan:
    """The integer constants of a ConvTranspose; weights are [out, in, height, width]."""
    weights = unit.constant(1)
    return contraction.plan(unit, weights.reshape(planar_shape(weights.shape)).swapaxes(0, 1))


def transposed_reference(unit: QuantUnit, inputs: Sequence[Array]) -> list[Array]:
    """Every input element spreads its products with the kernel over the output; then as Conv."""
    constants, window = transposed_plan(unit), window_of(unit)
    x = inputs[0].reshape(planar_shape(inputs[0].shape)).astype(np.float64) - constants.input_zero_point
    batch, _, height, width = planar_shape(unit.output.shape)
    top, left, bottom, right = window.pads
    sums = np.zeros((batch, constants.weights.shape[0], height + top + bottom, width + left + right))
    products = np.einsum("nchw,ockl->nohwkl", x, constants.centred.astype(np.float64), optimize=True)
    rows, columns = ((size - 1) * step + 1 for size, step in zip(x.shape[2:], window.strides, strict=True))
    for down in range(window.kernel[0]):
        for across in range(window.kernel[1]):
            y, z = down * window.dilations[0], across * window.dilations[1]
            target = sums[:, :, y : y + rows : window.strides[0], z : z + columns : window.strides[1]]
            target += products[..., down, across]
    cropped = sums[:, :, top : top + height, left : left + width].astype(np.int64)
    return [contraction.finish(cropped, constants, unit, 1).reshape(unit.output.shape)]


def transposed_macs(unit: QuantUnit) -> int:
    return unit.input(0).size * math.prod(unit.input(1).shape[1:])


def _padded_explicitly(unit: QuantUnit) -> str | None:
    auto_pad = unit.attributes.get("auto_pad", "NOTSET")
    return None if auto_pad == "NOTSET" else f"auto_pad {auto_pad}"


def _padded_forwards(unit: QuantUnit) -> str | None:
    pads = ints(unit, "pads", ())
    return None if all(pad >= 0 for pad in pads) else f"pads {pads}"


def _reaches_input(unit: QuantUnit) -> str | None:
    """Of a ConvTranspose: the first output must not lie past everything that inputs spread to."""
    window = window_of(unit)
    for axis, size in enumerate(planar_shape(unit.input(0).shape)[2:]):
        if window.pads[axis] >= (size - 1) * window.strides[axis] + window.spans[axis]:
            return f"pads {window.pads} on {size} elements"
    return None


def _weight_span(unit: QuantUnit) -> str | None:
    params = unit.input(1).params
    if params is None:
        return "weights without a scale"
    if len(set(params.zero_point)) == 1 or not unit.is_constant(1):
        return None
    shape = [1] * len(unit.input(1).shape)
    shape[params.axis or 0] = -1
    centred = unit.constant(1).astype(np.int64) - params.zero_points().astype(np.int64).reshape(shape)
    span = int(centred.max(initial=0) - centred.min(initial=0)) + 1
    return None if span <= contraction.WEIGHT_SPAN else f"zero points of their own per channel and {span} integers"


def scales_along(axis: int) -> Condition:
    """The limit that weights have one scale or one per index of an axis."""

    def violation(unit: QuantUnit) -> str | None:
        params = unit.input(1).params
        return None if params is None or params.axis in (None, axis) else f"axis {params.axis}"

    return Condition(f"weights must have one scale or one per output channel (axis {axis})", violation)


WEIGHT_SPAN = Condition("weights less their zero points must lie within 256 integers", _weight_span)


def _limits(weight_axis: int, *own: Limit) -> tuple[Limit, ...]:
    return (
        RankIn(0, (3, 4)),
        DtypeIn(0, ACTIVATION_TYPES),
        DtypeIn(1, WEIGHT_TYPES),
        DtypeIn(2, BIAS_TYPES),
        DtypeIn(-1, ACTIVATION_TYPES),
        SameDtype(),
        PerTensor(0),
        PerTensor(-1),
        ConstInput(1),
        ConstInput(2),
        scales_along(weight_axis),
        WEIGHT_SPAN,
        Condition("pads must be given as numbers", _padded_explicitly),
        Condition("pads must not be negative", _padded_forwards),
        *own,
    )


SPECS = (
    OpSpec(
        op_type="Conv",
        trait=Trait.CONTRACTION,
        limits=_limits(0),
        reference=reference,
        check=plan,
        macs=macs,
        weight_axis=0,
        summary="convolution over one or two dimensions, any groups, pads, strides and dilations",
    ),
    OpSpec(
        op_type="ConvTranspose",
        trait=Trait.CONTRACTION,
        limits=_limits(1, AttributeIn("group", (1,)), Condition("the input must reach the output", _reaches_input)),
        reference=transposed_reference,
        check=transposed_plan,
        macs=transposed_macs,
        weight_axis=1,
        summary="transposed convolution over one or two dimensions, any pads, strides and dilations",
    ),
)
