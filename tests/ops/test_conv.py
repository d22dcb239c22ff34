"""Conv on the ladder."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hexqdq.qtypes import QType
from tests.ops.cases import (
    EDGES,
    RELU,
    RELU6,
    S8,
    S8_HIGH,
    S8_LOW,
    U8,
    U8_HIGH,
    U8_LOW,
    Case,
    Edge,
    Geometry,
    Style,
    conv_transpose_unit,
    conv_unit,
    graph_of,
)
from tests.ops.ladder import FEW, accepted, climb, climb_compiled, sampled

SAME = (1, 1, 1, 1)


def _case(name: str, geometry: Geometry, style: Style | None = None) -> Case:
    return Case(name, graph_of(conv_unit(geometry, style or Style())))


def _transposed(name: str, geometry: Geometry, style: Style | None = None) -> Case:
    return Case(name, graph_of(conv_transpose_unit(geometry, style or Style())))


def _u8(*zero_points: int, extreme: bool = False, source: Edge = U8, per_channel: bool = False) -> Style:
    """Unsigned weights over zero points."""
    return Style(
        source,
        per_channel=per_channel,
        weight_dtype=QType.U8,
        weight_zero_points=zero_points,
        weight_scale=0.005,
        extreme=extreme,
    )


CASES = (
    _case("3x3_same", Geometry(pads=SAME), Style(clamp=RELU6)),
    _case("3x3_valid", Geometry()),
    _case("1x1", Geometry(kernel=(1, 1))),
    _case("1x1_stride", Geometry(kernel=(1, 1), strides=(2, 2), size=(7, 8))),
    _case("stride_2_end_pad_unused", Geometry(pads=SAME, strides=(2, 2))),
    _case("stride_2_input_unused", Geometry(strides=(2, 2), size=(6, 8))),
    _case("stride_3_pad_and_input_unused", Geometry(pads=(0, 0, 1, 1), strides=(3, 3), size=(7, 7))),
    _case("strides_differ", Geometry(pads=SAME, strides=(2, 1), size=(9, 5))),
    _case("stride_over_kernel", Geometry(kernel=(2, 1), strides=(3, 4), size=(9, 11))),
    _case("pads_differ", Geometry(pads=(2, 0, 1, 2))),
    _case("pads_over_kernel", Geometry(kernel=(2, 2), pads=(3, 2, 4, 3), size=(4, 4))),
    _case("windows_in_padding", Geometry(kernel=(1, 1), pads=(3, 3, 0, 0), strides=(5, 5), size=(1, 1))),
    _case("columns_in_padding", Geometry(kernel=(3, 1), pads=(1, 4, 1, 0), strides=(1, 7), size=(5, 2))),
    _case("depthwise_in_padding", Geometry(group=8, kernel=(1, 1), pads=(4, 0, 0, 0), strides=(9, 1), size=(4, 9))),
    _case("depthwise_1x1", Geometry(channels=5, filters=10, group=5, kernel=(1, 1))),
    _case("depthwise_1x1_padded", Geometry(group=8, filters=8, kernel=(1, 1), pads=(0, 1, 2, 0)), Style(S8)),
    _case("depthwise_one_element", Geometry(channels=2, filters=2, group=2, kernel=(1, 1), size=(1, 1))),
    _case("kernel_is_input", Geometry(kernel=(6, 6))),
    _case("kernel_1x5", Geometry(kernel=(1, 5), pads=(0, 2, 0, 2))),
    _case("kernel_5x5_same", Geometry(kernel=(5, 5), pads=(2, 2, 2, 2), size=(8, 9))),
    _case("height_1", Geometry(size=(1, 12), kernel=(1, 3), pads=(0, 1, 0, 1))),
    _case("3_channels", Geometry(channels=3, filters=5, pads=SAME)),
    _case("1_channel", Geometry(channels=1, filters=33, pads=SAME)),
    _case("64_channels", Geometry(channels=64, filters=40, size=(4, 5), pads=SAME)),
    _case("batch_2", Geometry(batch=2, pads=SAME), Style(clamp=RELU)),
    _case("depthwise", Geometry(group=8, filters=8, pads=SAME), Style(clamp=RELU6)),
    _case("depthwise_stride_2", Geometry(group=8, filters=8, pads=SAME, strides=(2, 2)), Style(S8)),
    _case("depthwise_multiplier", Geometry(group=8, filters=24, pads=SAME)),
    _case("depthwise_5x5", Geometry(channels=33, group=33, filters=33, kernel=(5, 5), pads=(2, 2, 2, 2))),
    _case("depthwise_zero_point_high", Geometry(group=8, filters=8, pads=SAME), Style(U8_HIGH, extreme=True)),
    _case("s8", Geometry(pads=SAME), Style(S8, clamp=RELU)),
    _case("per_tensor", Geometry(pads=SAME), Style(per_channel=False)),
    _case("no_bias", Geometry(pads=SAME), Style(bias=False)),
    _case("u8_zero_point_low", Geometry(pads=SAME), Style(U8_LOW)),
    _case("u8_zero_point_high", Geometry(pads=SAME), Style(U8_HIGH, extreme=True)),
    _case("s8_zero_point_low", Geometry(pads=SAME), Style(S8_LOW, extreme=True)),
    _case("s8_zero_point_high", Geometry(pads=SAME), Style(S8_HIGH)),
    _case("output_saturates", Geometry(pads=SAME), Style(result=U8_LOW)),
    _case("dilated", Geometry(size=(9, 11), pads=(2, 2, 2, 2), dilations=(2, 2))),
    _case("dilations_differ", Geometry(size=(9, 12), pads=(0, 3, 1, 2), dilations=(1, 4), strides=(2, 3))),
    _case("depthwise_dilated", Geometry(group=8, filters=8, size=(7, 7), pads=(3, 3, 3, 3), dilations=(3, 3))),
    _case("grouped", Geometry(channels=12, filters=9, group=3, pads=SAME), Style(clamp=RELU6)),
    _case("grouped_1x1", Geometry(channels=16, filters=8, group=4, kernel=(1, 1)), Style(S8, bias=False)),
    _case("grouped_wide", Geometry(channels=64, filters=64, group=2, size=(4, 4), pads=SAME)),
    _case("grouped_joined_in_part", Geometry(channels=36, filters=48, group=6, size=(4, 4), pads=SAME), Style(S8)),
    _case("grouped_per_tensor", Geometry(channels=6, filters=4, group=2), Style(per_channel=False)),
    _case("flat", Geometry(flat=True, size=(1, 20), kernel=(1, 5), pads=(0, 2, 0, 2))),
    _case("flat_grouped", Geometry(flat=True, group=2, size=(1, 20), kernel=(1, 3), strides=(1, 2))),
    _case("flat_depthwise", Geometry(flat=True, group=8, size=(1, 19), kernel=(1, 3), dilations=(1, 2))),
    _case("weights_u8", Geometry(pads=SAME), _u8(113)),
    _case("weights_u8_low", Geometry(channels=3, pads=SAME), _u8(0, extreme=True)),
    _case("weights_u8_high", Geometry(channels=5, filters=70, kernel=(1, 1)), _u8(255, source=S8)),
    _case("weights_u8_middle", Geometry(pads=SAME), _u8(128)),
    _case("weights_u8_both_high", Geometry(channels=6, pads=SAME), _u8(255, extreme=True, source=U8_HIGH)),
    _case("weights_u8_per_channel", Geometry(pads=SAME), _u8(40, per_channel=True)),
    _case("weights_u8_depthwise", Geometry(group=8, filters=16, pads=SAME), _u8(165)),
    _case("weights_u8_depthwise_1x1", Geometry(group=8, filters=8, kernel=(1, 1), pads=SAME), _u8(30)),
    _case("weights_u8_depthwise_extreme", Geometry(group=8, filters=8), _u8(1, extreme=True, source=S8_HIGH)),
    _case("weights_u8_grouped", Geometry(channels=8, group=4, pads=SAME), _u8(90)),
    _case("weights_u8_dilated", Geometry(size=(9, 9), pads=SAME, dilations=(2, 2)), _u8(150)),
    _case("weights_s8_zero_point", Geometry(pads=SAME), Style(weight_zero_points=(-20,), per_channel=False)),
    _case("bias_float", Geometry(pads=SAME), Style(float_bias=True)),
    _case("bias_other_scale", Geometry(pads=SAME), Style(bias_steps=5.5)),
    _transposed("2x2_stride_2", Geometry(kernel=(2, 2), strides=(2, 2))),
    _transposed("3x3_stride_2", Geometry(pads=SAME, strides=(2, 2), grown=(1, 1)), Style(clamp=RELU)),
    _transposed("4x4_stride_2", Geometry(kernel=(4, 4), pads=SAME, strides=(2, 2)), Style(S8)),
    _transposed("3x3_stride_1", Geometry(pads=SAME)),
    _transposed("stride_over_kernel", Geometry(kernel=(2, 1), strides=(3, 4), size=(3, 4), channels=3, filters=1)),
    _transposed("strides_differ", Geometry(kernel=(3, 4), strides=(1, 3), pads=(0, 2, 1, 0), grown=(0, 1))),
    _transposed("pads_over_kernel", Geometry(kernel=(2, 3), strides=(2, 2), pads=(5, 3, 2, 4))),
    _transposed("dilated", Geometry(dilations=(2, 3), strides=(2, 2), size=(4, 3))),
    _transposed("flat", Geometry(flat=True, size=(1, 9), kernel=(1, 4), strides=(1, 2), pads=(0, 1, 0, 1))),
    _transposed("batch_2", Geometry(batch=2, strides=(2, 2)), Style(per_channel=False, bias=False)),
    _transposed("weights_u8", Geometry(channels=6, strides=(2, 2), dilations=(1, 2)), _u8(140)),
)


@pytest.mark.tosa
@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case) -> None:
    climb(case)


@pytest.mark.qemu
@pytest.mark.parametrize("case", sampled(CASES), ids=str)
def test_compiled(case: Case, qemu: str) -> None:
    climb_compiled(case)


@st.composite
def geometries(draw: st.DrawFn, transposed: bool = False) -> Geometry:
    """Any Conv with at least one window: pads of up to a kernel, strides beyond it, holes, every kind of groups.

    Of a ConvTranspose, which has no groups, any whose output has an element.
    """
    flat = draw(st.booleans())
    kernel = (1 if flat else draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    size = (1 if flat else draw(st.integers(1, 9)), draw(st.integers(1, 9)))
    pads = [0 if flat and axis == 0 else draw(st.integers(0, kernel[axis])) for axis in (0, 1, 0, 1)]
    group = 1 if transposed else draw(st.sampled_from((1, 1, 2, 3, 7)))
    channels = group * draw(st.integers(1, 9 if group == 1 else 3))
    strides = (1 if flat else draw(st.integers(1, 5)), draw(st.integers(1, 5)))
    geometry = Geometry(
        channels=channels,
        filters=group * draw(st.integers(1, 9 if group == 1 else 3)),
        size=size,
        kernel=kernel,
        pads=(pads[0], pads[1], pads[2], pads[3]),
        strides=strides,
        group=group,
        batch=draw(st.integers(1, 2)),
        dilations=(1 if flat else draw(st.integers(1, 3)), draw(st.integers(1, 3))),
        grown=(0 if flat else draw(st.integers(0, strides[0] - 1)), draw(st.integers(0, strides[1] - 1))),
        flat=flat,
    )
    assume(min(geometry.transposed_size if transposed else geometry.output_size) >= 1)
    return geometry


@st.composite
def styles(draw: st.DrawFn) -> Style:
    """Any quantization of a contraction: zero points at their ends, scales over many octaves."""
    weight_dtype = draw(st.sampled_from((QType.S8, QType.S8, QType.U8)))
    low, high = weight_dtype.low, weight_dtype.high
    zero_point = draw(st.sampled_from((0, 0, low, high, (low + high) // 2 + 1, low + 70)))
    return Style(
        source=draw(st.sampled_from(EDGES)),
        per_channel=draw(st.booleans()),
        bias=draw(st.booleans()),
        clamp=draw(st.sampled_from((None, RELU, RELU6))),
        seed=draw(st.integers(0, 1 << 16)),
        extreme=draw(st.booleans()),
        weight_scale=draw(st.sampled_from((2.0**-20, 0.0013, 0.01, 1.0))),
        weight_dtype=weight_dtype,
        weight_zero_points=(zero_point,),
        float_bias=draw(st.booleans()),
        bias_steps=draw(st.sampled_from((1.0, 1.0, 3.7))),
    )


@st.composite
def drawn(draw: st.DrawFn) -> Case:
    if draw(st.integers(0, 2)) == 0:
        return _transposed("drawn", draw(geometries(transposed=True)), draw(styles()))
    return _case("drawn", draw(geometries()), draw(styles()))


@pytest.mark.tosa
@given(case=drawn())
def test_drawn(case: Case) -> None:
    climb(accepted(case))


@pytest.mark.qemu
@FEW
@given(case=drawn())
def test_drawn_compiled(case: Case, qemu: str) -> None:
    climb_compiled(accepted(case))
