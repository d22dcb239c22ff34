"""From TOSA to nodes: goldens of the linalg stage, and what the passes over nodes must do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hexqdq.compile.linalg.loops import respaced
from hexqdq.compile.linalg.nest import Access, Contraction, Function, Nest, Place
from hexqdq.compile.linalg.pipeline import lower_to_nodes
from hexqdq.compile.linalg.show import text_of
from hexqdq.compile.product import TosaSegment
from hexqdq.errors import CompileError
from tests.compile.segments import Conv, Writer, conv_of, conv_segment
from tests.compile.test_segments import movements, pooled, residual


def nodes(segment: TosaSegment) -> Function:
    return lower_to_nodes(segment)[0]


GOLDENS: dict[str, Callable[[], TosaSegment]] = {
    "conv_3_channels": lambda: conv_segment(Conv(channels=3, filters=4, size=(4, 4))),
    "depthwise": lambda: conv_segment(Conv(depthwise=True, filters=1, channels=4, size=(4, 4))),
    "residual": residual,
    "pooled": pooled,
    "movements": movements,
}


@pytest.mark.parametrize("name", GOLDENS)
def test_golden(name: str, root: Path, refresh_goldens: bool) -> None:
    function, linalg = lower_to_nodes(GOLDENS[name]())
    for suffix, text in ((".mlir", linalg), (".txt", text_of(function))):
        path = root / "tests" / "golden" / "linalg" / f"{name}{suffix}"
        if refresh_goldens:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.read_text() == text, f"{path.name} is another text; --refresh-goldens rewrites it"


def test_a_residual_block_is_four_kernels() -> None:
    function = nodes(residual())
    kinds = [[type(part).__name__ for part in node.parts] for node in function.nodes]
    assert kinds == [["Contraction"], ["Nest", "Nest"], ["Contraction"], ["Nest", "Nest"], ["Nest"]]
    (addition,) = (part for part in function.nodes[2].parts if isinstance(part, Contraction))
    assert "input0" in {access.buffer for access in addition.finish.reads}, "the addition belongs to the convolution"


def test_a_1x1_convolution_has_one_pixel_loop() -> None:
    (node,) = nodes(conv_segment(Conv(kernel=1, pad=0))).nodes
    (part,) = node.parts
    assert isinstance(part, Contraction)
    assert (part.extents, part.taps, part.bias) == ((64,), (8,), "argument2")


def test_channels_are_padded_inside_the_pad() -> None:
    pad, conv = nodes(conv_segment(Conv(channels=3))).nodes
    (part,) = conv.parts
    assert isinstance(part, Contraction)
    assert (part.taps, part.depth, len(pad.parts)) == ((3, 3, 4), 3, 2)


def test_channels_without_a_pad_are_copied() -> None:
    copied, conv = nodes(conv_segment(Conv(channels=5, kernel=1, pad=0))).nodes
    assert copied.label == "pad channels" and isinstance(conv.parts[0], Contraction)


def test_an_output_read_inside_is_written_once() -> None:
    function = nodes(residual())
    second = function.buffers[function.outputs[1]]
    assert second.place is Place.OUTPUT
    assert [node.output for node in function.nodes].count(second.name) == 1


def test_what_no_result_needs_is_not_computed() -> None:
    writer = Writer()
    value = writer.input((1, 4, 4, 8))
    kept = conv_of(writer, value, Conv(size=(4, 4), kernel=1, pad=0), 1)
    conv_of(writer, value, Conv(size=(4, 4)), 2)
    assert len(nodes(writer.segment(kept)).nodes) == 1


def test_elementwise_feeds_a_reduction_in_its_loop() -> None:
    writer = Writer()
    wide = writer.rescale(writer.input((4, 30)), [16384], 14, (3, 0), "i32")
    total = writer.op("reduce_sum", [wide], (4, 1), "i32", "axis = 1 : i32")
    (node,) = nodes(writer.segment(total)).nodes
    (nest,) = node.parts
    assert isinstance(nest, Nest) and nest.reduce is not None and nest.reduce.reads[0].buffer == "input0"


def test_an_operation_without_a_form_is_named() -> None:
    writer = Writer()
    value = writer.input((1, 2, 2, 1), "i32")
    attributes = 'mode = "NEAREST_NEIGHBOR"'
    shapes = [writer.shape((1, 1, 1, 1)), writer.shape((0, 0)), writer.shape((0, 0))]
    with pytest.raises(CompileError, match="segment segment"):
        nodes(writer.segment(writer.op("no_such_operation", [value, *shapes], (1, 2, 2, 1), "i32", attributes)))


@pytest.mark.parametrize(
    ("extents", "strides", "target", "expected"),
    [
        ((4, 6), (6, 1), (24,), (1,)),
        ((4, 6), (0, 1), (4, 6), (0, 1)),
        ((24,), (1,), (4, 6), (6, 1)),
        ((1, 24), (7, 2), (2, 3, 4), (24, 8, 2)),
        ((4, 6), (0, 1), (24,), None),
        ((6, 4), (0, 1), (4, 6), None),
        ((4, 6), (6, 1), (4,), None),
    ],
)
def test_loops_over_the_same_elements(
    extents: tuple[int, ...], strides: tuple[int, ...], target: tuple[int, ...], expected: tuple[int, ...] | None
) -> None:
    found = respaced(extents, [Access("a", strides)], target)
    assert (found[0].strides if found else None) == expected
