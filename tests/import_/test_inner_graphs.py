"""If, Loop and Scan are imported with static shapes, names of their own, and known branches taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from numpy.typing import NDArray

from hexqdq.errors import ModelError
from hexqdq.import_.passes.inline import take_known_branches
from hexqdq.import_.passes.names import name_nodes
from hexqdq.import_.pipeline import import_model
from tests.import_.models import outputs, parse

CHOICE = """m (float[2,4] x) => (float[2,4] y, float[2,4] k) {
    k = Neg(x)
    y = If (c) <
        then_branch = t () => (float[2,4] a) { two = Constant<value = float {2.0}>() h = Mul(k, two) a = Relu(h) },
        else_branch = e () => (float[2,4] k2) { k2 = Identity(k) }>
}"""
BODY = "{ c2 = Identity(c) s2 = Add(s, x) o = Neg(s2) }"
LOOP = """m (float[2,4] x) => (float[K,L] y, float[P,Q,R] ys) {{
    y, ys = Loop (n, {condition}, x) <body = b (int64 i, bool c, float[] s) => (bool c2, float[] s2, float[] o) {body}>
}}"""
X = np.arange(-4, 4, dtype=np.float32).reshape(2, 4)


def ops(model: ir.Model) -> list[str]:
    return [node.op_type for node in model.graph]


@pytest.mark.parametrize("condition, expected", [(True, ["Neg", "Mul", "Relu"]), (False, ["Neg", "Identity"])])
def test_branch_of_a_known_condition_takes_the_place_of_the_if(condition: bool, expected: list[str]) -> None:
    source = parse(CHOICE, c=np.array(condition))
    imported = import_model(source)
    assert ops(imported.model) == expected
    assert [value.name for value in imported.model.graph.outputs] == ["y", "k"]
    for found, exact in zip(outputs(imported.model, {"x": X}), outputs(source, {"x": X}), strict=True):
        np.testing.assert_array_equal(found, exact)


def test_condition_may_be_computed_from_shapes() -> None:
    text = CHOICE.replace("k = Neg(x)", "k = Neg(x) s = Shape(x) r = Size(s) c = Equal(r, two)").replace(
        "(float[2,4] x)", "(float[A,4] x)"
    )
    imported = import_model(parse(text, two=np.array(2, np.int64)), {"x": (2, 4)})
    assert "If" not in ops(imported.model)


def test_unknown_condition_stays() -> None:
    imported = import_model(parse(CHOICE.replace("(float[2,4] x)", "(float[2,4] x, bool c)")))
    assert ops(imported.model) == ["Neg", "If"]
    assert take_known_branches(imported.model) == 0


def test_names_inside_are_of_the_holder() -> None:
    imported = import_model(parse(CHOICE.replace("(float[2,4] x)", "(float[2,4] x, bool c)")))
    choice = imported.model.graph[1]
    branch = choice.attributes["then_branch"].as_graph()
    assert all(str(node.name).startswith(f"{choice.name}.then_branch.") for node in branch)
    assert all(str(v.name).startswith(f"{choice.name}.then_branch.") for node in branch for v in node.outputs)
    assert name_nodes(imported.model) == 0


def loop(condition: str = "", body: str = BODY, **constants: NDArray[Any]) -> onnx.ModelProto:
    return parse(LOOP.format(condition=condition, body=body), opset=17, **constants)


@pytest.mark.parametrize("condition", ["", "yes"])
def test_shapes_of_a_loop(condition: str) -> None:
    source = loop(condition, n=np.array(3, np.int64), yes=np.array(True))
    imported = import_model(source)
    shapes = [value.shape.numpy() for value in imported.model.graph.outputs if value.shape is not None]
    assert shapes == [(2, 4), (3, 2, 4)]
    for found, exact in zip(outputs(imported.model, {"x": X}), outputs(source, {"x": X}), strict=True):
        np.testing.assert_array_equal(found, exact)


@pytest.mark.parametrize(
    "body",
    [
        "{ c2 = Identity(c) s2 = Concat<axis = 0>(s, x) o = Neg(x) }",
        "{ z = ReduceSum<keepdims = 0>(s) c2 = Cast<to = 9>(z) s2 = Add(s, x) o = Neg(x) }",
    ],
    ids=["a state that grows", "turns that depend on the data"],
)
def test_loops_of_open_shape_are_refused_by_name(body: str) -> None:
    with pytest.raises(ModelError, match=r"value 'ys?' of node 'Loop_y' \(Loop\) has no static shape"):
        import_model(loop(body=body, n=np.array(3, np.int64)))


def test_functions_inside_are_inlined() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17, "own" : 1]>
    m (float[2,4] x, bool c) => (float[2,4] y) {
        y = If (c) <
            then_branch = t () => (float[2,4] a) { a = own.f(x) },
            else_branch = e () => (float[2,4] b) { b = Neg(x) }>
    }
    <domain: "own", opset_import: ["" : 17]> f (v) => (w) { u = Relu(v) w = Add(u, v) }"""
    source = onnx.parser.parse_model(text)
    imported = import_model(source)
    branch = imported.model.graph[0].attributes["then_branch"].as_graph()
    assert [node.op_type for node in branch] == ["Relu", "Add"]
    for chosen in (np.array(True), np.array(False)):
        feeds = {"x": X, "c": chosen}
        np.testing.assert_array_equal(outputs(imported.model, feeds)[0], outputs(source, feeds)[0])


def test_old_opset_is_upgraded_inside_too() -> None:
    text = """m (float[1,4] x, bool c) => (float[4] y) {
        y = If (c) <
            then_branch = t () => (float[4] a) { h = Relu(x) a = Squeeze<axes = [0]>(h) },
            else_branch = e () => (float[4] b) { b = Squeeze<axes = [0]>(x) }>
    }"""
    source = parse(text, opset=11)
    imported = import_model(source)
    assert imported.model.graph.opset_imports[""] == 17
    feeds = {"x": X[:1], "c": np.array(True)}
    np.testing.assert_array_equal(outputs(imported.model, feeds)[0], outputs(source, feeds)[0])
