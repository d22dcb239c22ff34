"""TOSA as text: valid for upstream MLIR, no transposes inside, goldens."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hexqdq.compile.tosa import LOWERINGS, lower_segment
from hexqdq.errors import CompileError
from hexqdq.ops import OPS
from hexqdq.ops.unit import QuantUnit, UnitGraph
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
from tests.ops.cases import U8, Case, Geometry, Style, add_unit, conv_unit, graph_of, unary_unit
from tests.ops.whole import graphs, pyramids

FAMILIES = (
    graphs,
    pyramids,
    test_activation,
    test_conv,
    test_elementwise,
    test_matmul,
    test_movement,
    test_pool,
    test_resize,
    test_shape,
)
EVERY_CASE = tuple(case for family in FAMILIES for case in family.CASES)
UPSTREAM = (
    "builtin.module(tosa-attach-target{{profiles=pro_int level={level}}},tosa-validate{{strict-op-spec-alignment}},"
    "func.func(tosa-optional-decompositions,tosa-to-linalg-named,tosa-to-linalg,"
    "tosa-to-arith{{include-apply-rescale=false}},tosa-to-tensor))"
)
"""MLIR 22 counts a PAD's shape operand against level 8K's largest rank, so a rank 4 PAD passes at no level only."""
TRANSPOSES = {
    "classifier": 1,
    "channels_last": 0,
    "cancel": 2,
    "swapped": 3,
    "two_outputs": 3,
    "through": 0,
    "shared": 2,
    "broadcast": 2,
    "pyramid": 3,
    "focus": 2,
    "detector_tail": 1,
    "pooled_branch": 2,
}
"""What the border costs: NCHW in, NCHW out, orders that a convolution cannot take, pixels from channels."""


def test_every_op_has_a_lowering() -> None:
    assert set(LOWERINGS) == set(OPS)


@pytest.mark.parametrize("case", EVERY_CASE, ids=str)
def test_upstream_lowers_it(case: Case) -> None:
    from mlir.ir import Context, Location, Module
    from mlir.passmanager import PassManager

    text = lower_segment(case.graph).text
    level = "none" if "tosa.pad" in text else "8k"
    with Context(), Location.unknown():
        module = Module.parse(text)
        PassManager.parse(UPSTREAM.format(level=level)).run(module.operation)
        left = [line for line in str(module).splitlines() if "tosa." in line and "tosa.apply_scale" not in line]
    assert [line for line in left if "tosa.const_shape" not in line and "tosa.target_env" not in line] == []


@pytest.mark.parametrize("name", TRANSPOSES)
def test_transposes_only_where_needed(name: str) -> None:
    (graph,) = (graph for graph in (*graphs.GRAPHS, *pyramids.PYRAMIDS) if graph.name == name)
    assert lower_segment(graph).text.count("tosa.transpose") == TRANSPOSES[name]


def test_a_transpose_of_ones_is_a_reshape() -> None:
    x = U8.tensor("x", (1, 6, 1, 5))
    text = lower_segment(
        graph_of(unary_unit("Transpose", x, U8.tensor("y", (1, 6, 5, 1)), {"perm": (0, 1, 3, 2)}))
    ).text
    assert "tosa.transpose" not in text and "tosa.reshape" in text


def test_constants_are_arguments_in_their_layouts() -> None:
    unit = conv_unit(Geometry(channels=4, filters=6, kernel=(3, 2)), Style())
    segment = lower_segment(graph_of(unit))
    (weight_name, weight), (bias_name, bias) = segment.constants
    assert weight_name.startswith("y_w") and np.array_equal(weight, unit.constant(1).transpose(0, 2, 3, 1))
    assert bias_name == "y_unit:bias" and np.array_equal(bias, unit.constant(2))
    assert "tensor<6x3x2x4xi8>" in segment.text.splitlines()[1]


def test_depthwise_weights_are_hwcm() -> None:
    unit = conv_unit(Geometry(channels=3, filters=6, kernel=(2, 1), group=3), Style())
    (_, weight), _ = lower_segment(graph_of(unit)).constants
    assert weight.shape == (2, 1, 3, 2)
    assert weight[1, 0, 2, 1] == unit.constant(1)[2 * 2 + 1, 0, 1, 0]


def test_a_shared_weight_is_one_argument() -> None:
    (graph,) = (graph for graph in graphs.GRAPHS if graph.name == "shared")
    names = [name for name, _ in lower_segment(graph).constants]
    assert sum(name.startswith("first_w") for name in names) == 1 and len(names) == len(set(names)) == 3


def test_a_u8_constant_operand_is_flipped() -> None:
    unit = add_unit(U8.tensor("a", (4,)), U8.tensor("b", (4,)), U8)
    values = np.array([0, 127, 128, 255], np.uint8)
    bound = QuantUnit(unit.name, "Add", unit.inputs, unit.outputs, {}, {"b": values})
    ((_, stored),) = lower_segment(graph_of(bound)).constants
    assert stored.tolist() == [-128, -1, 0, 127]


def test_names_become_symbols() -> None:
    graph = graph_of(unary_unit("Flatten", U8.tensor("x", (2, 3)), U8.tensor("y", (2, 3))), name="0/a b.é")
    segment = lower_segment(graph)
    assert segment.name == "segment_0_a_b__" and f"@{segment.name}(" in segment.text


def test_an_unknown_op_is_refused_by_name() -> None:
    x = U8.tensor("x", (2, 3))
    unit = unary_unit("Erf", x, U8.tensor("y", (2, 3)))
    with pytest.raises(CompileError, match="y_unit: Erf has no TOSA lowering; expected one of Conv"):
        lower_segment(UnitGraph("bad", (x,), unit.outputs, (unit,)))


GOLDENS = tuple(
    case
    for case in EVERY_CASE
    if str(case)
    in (
        "Conv-stride_3_pad_and_input_unused",
        "Conv-depthwise_multiplier",
        "Gemm-trans_b",
        "Add-broadcast_channel",
        "Softmax-channels",
        "Softmax-classifier",
        "Transpose-channels_last",
    )
)


@pytest.mark.parametrize("case", GOLDENS, ids=str)
def test_golden(case: Case, root: Path, refresh_goldens: bool) -> None:
    path = root / "tests" / "golden" / "tosa" / f"{str(case).lower()}-{case.graph.name}.mlir"
    text = lower_segment(case.graph).text
    if refresh_goldens:
        path.write_text(text)
    assert path.read_text() == text, f"{path.name} is another text; --refresh-goldens rewrites it"
