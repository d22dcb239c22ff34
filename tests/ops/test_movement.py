"""Slice, Split, Concat, Pad and blocks of pixels on the ladder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexqdq.ops import OPS
from hexqdq.ops.unit import Array, Attribute, Clamp, QuantUnit, Tensor
from hexqdq.qtypes import QType
from tests.ops.cases import EDGES, RELU, S8, S8_LOW, U8, U8_HIGH, U8_LOW, Case, Edge, feeds_of, graph_of
from tests.ops.ladder import (
    FEW,
    TARGET,
    accepted,
    climb,
    climb_compiled,
    climb_integers,
    onnxruntime_stage,
    reference_stage,
    same,
    sampled,
)

Shape = tuple[int, ...]


def movement(
    op_type: str,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    constants: Mapping[str, Array | None],
    attributes: Mapping[str, Attribute] | None = None,
    clamp: Clamp | None = None,
) -> QuantUnit:
    """A unit with constants of plain numbers after its data; None leaves a position empty."""
    prefix = outputs[0].name
    named = {name: f"{prefix}_{name}" for name in constants}
    plain = [
        None if values is None else Tensor(named[name], values.shape, QType.from_numpy(values.dtype))
        for name, values in constants.items()
    ]
    held = {named[name]: values for name, values in constants.items() if values is not None}
    return QuantUnit(f"{prefix}_unit", op_type, (*inputs, *plain), tuple(outputs), attributes or {}, held, clamp)


def _ints(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


def _slice(
    name: str, shape: Shape, starts: Shape, ends: Shape, axes: Shape, steps: Shape | None = None, edge: Edge = U8
) -> Case:
    window = [slice(None)] * len(shape)
    for axis, start, end, step in zip(axes, starts, ends, steps or (1,) * len(axes), strict=True):
        window[axis] = slice(start, end, step)
    after = np.zeros(shape, np.int8)[tuple(window)].shape
    constants = {"starts": _ints(*starts), "ends": _ints(*ends), "axes": _ints(*axes)}
    constants |= {"steps": _ints(*steps)} if steps else {}
    return Case(name, graph_of(movement("Slice", [edge.tensor("x", shape)], [edge.tensor("y", after)], constants)))


def _split(name: str, shape: Shape, sizes: Shape, axis: int, edge: Edge = U8) -> Case:
    outputs = [edge.tensor(f"y{i}", (*shape[:axis], size, *shape[axis + 1 :])) for i, size in enumerate(sizes)]
    unit = movement("Split", [edge.tensor("x", shape)], outputs, {"sizes": _ints(*sizes)}, {"axis": axis})
    return Case(name, graph_of(unit))


def _concat(name: str, shapes: Sequence[Shape], axis: int, edges: Sequence[Edge], clamp: Clamp | None = None) -> Case:
    """Inputs of the first edges, the output of the last one."""
    total = sum(shape[axis] for shape in shapes)
    after = list(shapes[0])
    after[axis] = total
    inputs = [edge.tensor(f"x{i}", shape) for i, (edge, shape) in enumerate(zip(edges, shapes, strict=False))]
    unit = movement("Concat", inputs, [edges[-1].tensor("y", tuple(after))], {}, {"axis": axis}, clamp)
    return Case(name, graph_of(unit))


def _concat_constant() -> Case:
    values = np.arange(6, dtype=np.uint8).reshape(1, 2, 3)
    held = U8.tensor("held", values.shape)
    unit = QuantUnit(
        "y_unit",
        "Concat",
        (U8.tensor("x", (1, 2, 4)), held),
        (U8_LOW.tensor("y", (1, 2, 7)),),
        {"axis": 2},
        {"held": values},
    )
    return Case("constant", graph_of(unit))


def _pad(
    name: str, shape: Shape, pads: Shape, mode: str = "constant", value: float | None = None, edge: Edge = U8
) -> Case:
    rank = len(shape)
    after = tuple(size + pads[axis] + pads[axis + rank] for axis, size in enumerate(shape))
    constants: dict[str, Array | None] = {"pads": _ints(*pads)}
    if value is not None:
        constants["value"] = np.array(value, np.float32)
    unit = movement("Pad", [edge.tensor("x", shape)], [edge.tensor("y", after)], constants, {"mode": mode})
    return Case(name, graph_of(unit))


def _pad_quantized() -> Case:
    fill = Edge(QType.U8, 0.01, 3).tensor("fill", ())
    inputs = (U8.tensor("x", (1, 2, 3, 3)), Tensor("pads", (8,), QType.S64), fill)
    constants = {"pads": _ints(0, 0, 1, 1, 0, 0, 1, 1), "fill": np.array(250, np.uint8)}
    unit = QuantUnit("y_unit", "Pad", inputs, (U8.tensor("y", (1, 2, 5, 5)),), {"mode": "constant"}, constants)
    return Case("quantized_value", graph_of(unit))


def _blocks(name: str, shape: Shape, size: int, mode: str | None = "DCR", edge: Edge = U8) -> Case:
    """DepthToSpace in a mode, SpaceToDepth where that is None."""
    batch, channels, height, width = shape
    attributes: dict[str, Attribute] = {"blocksize": size}
    if mode:
        attributes["mode"] = mode
        after = (batch, channels // size**2, height * size, width * size)
    else:
        after = (batch, channels * size**2, height // size, width // size)
    op_type = "DepthToSpace" if mode else "SpaceToDepth"
    unit = movement(op_type, [edge.tensor("x", shape)], [edge.tensor("y", after)], {}, attributes)
    return Case(name, graph_of(unit))


BIG = 2**62
CASES = (
    _slice("channels", (1, 8, 4, 5), (2,), (6,), (1,)),
    _slice("focus", (1, 3, 6, 8), (1, 0), (BIG, BIG), (2, 3), (2, 2)),
    _slice("odd_step", (2, 7), (0,), (7,), (1,), (2,)),
    _slice("last_phase", (7, 3), (1,), (7,), (0,), (3,)),
    _slice("step_needs_pad", (1, 5), (0,), (5,), (1,), (4,)),
    _slice("backwards", (2, 6, 3), (-1,), (-BIG,), (1,), (-1,), S8),
    _slice("backwards_by_two", (9,), (7,), (0,), (0,), (-2,)),
    _slice("from_the_end", (2, 6), (-3,), (-1,), (-1,)),
    _split("channels", (1, 6, 2, 3), (1, 2, 3), 1),
    _split("equal_last", (2, 3, 8), (4, 4), 2, S8),
    _concat("channels", ((1, 2, 3, 3), (1, 3, 3, 3)), 1, (U8, U8, U8)),
    _concat("one", ((2, 3),), 0, (U8, U8)),
    _concat("other_scales", ((2, 3), (2, 4), (2, 1)), 1, (U8, U8_LOW, U8_HIGH, Edge(scale=0.06, zero_point=100))),
    _concat("signed", ((4,), (5,)), 0, (S8, S8_LOW, S8)),
    _concat("relu", ((1, 4, 2), (1, 4, 2)), 2, (U8, U8, U8), RELU),
    _concat_constant(),
    _pad("image", (1, 3, 4, 5), (0, 0, 1, 2, 0, 0, 3, 0)),
    _pad("signed", (2, 3), (1, 0, 0, 2), edge=S8),
    _pad("value", (1, 2, 3), (0, 1, 0, 0, 0, 2), value=1.5),
    _pad("value_saturates", (2, 3), (1, 1, 1, 1), value=-1e30),
    _pad_quantized(),
    _pad("crop", (1, 5, 6), (0, -1, 2, 0, -2, -1)),
    _pad("reflect", (1, 2, 5, 4), (0, 0, 2, 1, 0, 0, 3, 2), "reflect"),
    _pad("edge", (1, 2, 3, 4), (0, 0, 2, 1, 0, 0, 1, 3), "edge", edge=S8),
    _pad("wrap", (3, 4), (1, 2, 0, 3), "wrap"),
    _blocks("dcr", (1, 8, 3, 2), 2),
    _blocks("crd", (2, 18, 2, 3), 3, "CRD", S8),
    _blocks("back", (1, 3, 4, 6), 2, None),
)


@pytest.mark.tosa
@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case) -> None:
    climb(case)


def bare(case: Case) -> Case:
    """The same on integers without scales."""
    (unit,) = case.graph.units
    inputs = tuple(None if t is None else replace(t, params=None) for t in unit.inputs)
    outputs = tuple(replace(tensor, params=None) for tensor in unit.outputs)
    return Case(f"{case.name}_bare", graph_of(replace(unit, inputs=inputs, outputs=outputs, clamp=None)))


BARE = tuple(bare(case) for case in CASES if not case.name.startswith("value"))
"""Cases that bare integers have too: a real fill has no integer without a scale."""


@pytest.mark.tosa
@pytest.mark.parametrize("case", BARE, ids=str)
def test_bare_integers(case: Case) -> None:
    in_runtime, defined = onnxruntime_stage(case.graph), reference_stage(case.graph)
    for feeds in feeds_of(case.graph):
        same(case, "onnxruntime", in_runtime(feeds), defined(feeds))
    (unit,) = case.graph.units
    assert OPS[unit.op_type].refusal(unit, TARGET) is None
    climb_integers(case)


@pytest.mark.qemu
@pytest.mark.parametrize("case", sampled(CASES), ids=str)
def test_compiled(case: Case, qemu: str) -> None:
    climb_compiled(case)


@st.composite
def drawn(draw: st.DrawFn) -> Case:
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    axis = draw(st.integers(0, len(shape) - 1))
    edge = draw(st.sampled_from(EDGES))
    kind = draw(st.sampled_from(("slice", "split", "concat", "pad")))
    if kind == "slice":
        starts, ends, steps = (
            draw(st.integers(-7, 7)),
            draw(st.integers(-7, 7)),
            draw(st.sampled_from((-2, -1, 1, 2, 3))),
        )
        return _slice("drawn", shape, (starts,), (ends,), (axis,), (steps,), edge)
    if kind == "split":
        sizes = tuple(draw(st.lists(st.integers(1, 3), min_size=2, max_size=4)))
        return _split("drawn", (*shape[:axis], sum(sizes), *shape[axis + 1 :]), sizes, axis, edge)
    if kind == "concat":
        shapes = [(*shape[:axis], draw(st.integers(1, 4)), *shape[axis + 1 :]) for _ in range(draw(st.integers(1, 4)))]
        others = [Edge(edge.dtype, draw(st.sampled_from((0.01, 0.03, 0.2))), edge.zero_point) for _ in shapes]
        return _concat("drawn", shapes, axis, (*draw(st.sampled_from(((edge,) * len(shapes), others))), edge))
    mode = draw(st.sampled_from(("constant", "edge", "reflect", "wrap")))
    most = min(size - 1 for size in shape) if mode == "reflect" else 1 if mode == "wrap" else 3
    pads = tuple(draw(st.integers(0, most)) for _ in range(2 * len(shape)))
    return _pad("drawn", shape, pads, mode, edge=edge)


@pytest.mark.tosa
@given(case=drawn())
def test_drawn(case: Case) -> None:
    climb(accepted(case))


@pytest.mark.qemu
@FEW
@given(case=drawn())
def test_drawn_compiled(case: Case, qemu: str) -> None:
    climb_compiled(accepted(case))
