"""Conv on the ladder."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.ops.cases import (
    EDGES,
    RELU,
    RELU6,
    S8,
    S8_HIGH,
    S8_LOW,
    U8_HIGH,
    U8_LOW,
    Case,
    Geometry,
    Style,
    conv_unit,
    graph_of,
)
from tests.ops.ladder import FEW, accepted, climb, climb_compiled, sampled

SAME = (1, 1, 1, 1)


def _case(name: str, geometry: Geometry, style: Style | None = None) -> Case:
    return Case(name, graph_of(conv_unit(geometry, style or Style())))


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
def geometries(draw: st.DrawFn) -> Geometry:
    """Any Conv with at least one window: pads of up to a kernel, strides beyond it, dense or depthwise."""
    kernel = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    size = draw(st.tuples(st.integers(1, 9), st.integers(1, 9)))
    pads = [draw(st.integers(0, kernel[axis])) for axis in (0, 1, 0, 1)]
    channels, depthwise = draw(st.integers(1, 9)), draw(st.booleans())
    filters = channels * draw(st.integers(1, 2)) if depthwise else draw(st.integers(1, 9))
    geometry = Geometry(
        channels=channels,
        filters=filters,
        size=size,
        kernel=kernel,
        pads=(pads[0], pads[1], pads[2], pads[3]),
        strides=draw(st.tuples(st.integers(1, 5), st.integers(1, 5))),
        group=channels if depthwise else 1,
        batch=draw(st.integers(1, 2)),
    )
    assume(min(size[axis] + pads[axis] + pads[axis + 2] - kernel[axis] for axis in (0, 1)) >= 0)
    return geometry


@st.composite
def styles(draw: st.DrawFn) -> Style:
    """Any quantization of a contraction: zero points at their ends, scales over many octaves."""
    return Style(
        source=draw(st.sampled_from(EDGES)),
        per_channel=draw(st.booleans()),
        bias=draw(st.booleans()),
        clamp=draw(st.sampled_from((None, RELU, RELU6))),
        seed=draw(st.integers(0, 1 << 16)),
        extreme=draw(st.booleans()),
        weight_scale=draw(st.sampled_from((2.0**-20, 0.0013, 0.01, 1.0))),
    )


@st.composite
def drawn(draw: st.DrawFn) -> Case:
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
