"""The runner of passes: what it verifies, dumps and times."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx_ir as ir
import pytest

from hexqdq.errors import CompileError
from hexqdq.passes import Pass, run_passes, well_formed


def model() -> ir.Model:
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([2]))
    first = ir.Node("", "Relu", [x], outputs=[ir.Value(name="y")], name="first")
    second = ir.Node("", "Neg", list(first.outputs), outputs=[ir.Value(name="z")], name="second")
    graph = ir.Graph([x], list(second.outputs), nodes=[first, second], opset_imports={"": 17}, name="g")
    return ir.Model(graph, ir_version=8)


def rename(graph_model: ir.Model) -> int:
    nodes = [node for node in graph_model.graph if not str(node.name).endswith("!")]
    for node in nodes:
        node.name = f"{node.name}!"
    return len(nodes)


RENAME = Pass("rename", "for the test", rename)


def test_changes_are_counted_and_a_second_run_makes_none() -> None:
    graph_model = model()
    records = run_passes(graph_model, (RENAME, RENAME))
    assert [(record.name, record.changes) for record in records] == [("rename", 2), ("rename", 0)]
    assert all(record.seconds >= 0 for record in records)


def test_every_pass_is_dumped_with_its_number(tmp_path: Path) -> None:
    run_passes(model(), (RENAME, Pass("nothing", "", lambda _: 0)), dump=tmp_path / "deep")
    assert sorted(path.name for path in (tmp_path / "deep").iterdir()) == ["00_rename.onnx", "01_nothing.onnx"]
    assert [node.name for node in ir.load(tmp_path / "deep" / "01_nothing.onnx").graph] == ["first!", "second!"]


def test_the_room_s_own_problem_names_the_pass(tmp_path: Path) -> None:
    def unhappy(graph_model: ir.Model) -> Iterator[str]:
        yield from (f"node {node.name} is renamed" for node in graph_model.graph if str(node.name).endswith("!"))

    with pytest.raises(CompileError, match=r"pass rename: .*node first! is renamed \(and 1 more\)"):
        run_passes(model(), (RENAME,), verify=unhappy, dump=tmp_path)
    assert (tmp_path / "00_rename.onnx").exists()


def _unname(graph_model: ir.Model) -> int:
    graph_model.graph[0].name = ""
    return 1


def _double_node(graph_model: ir.Model) -> int:
    graph_model.graph[1].name = "first"
    return 1


def _double_value(graph_model: ir.Model) -> int:
    graph_model.graph[1].outputs[0].name = "y"
    return 1


def _reverse(graph_model: ir.Model) -> int:
    first = graph_model.graph[0]
    graph_model.graph.remove(first)
    graph_model.graph.append(first)
    return 1


def _strange_output(graph_model: ir.Model) -> int:
    graph_model.graph.outputs[0] = ir.Value(name="nowhere")
    return 1


@pytest.mark.parametrize(
    ("breaking", "said"),
    [
        (_unname, "no name of its own"),
        (_double_node, "no name of its own"),
        (_double_value, "made twice"),
        (_reverse, "before anything makes it"),
        (_strange_output, "made by nothing"),
    ],
)
def test_a_graph_that_is_not_well_formed_is_seen(breaking: object, said: str) -> None:
    assert callable(breaking)
    with pytest.raises(CompileError, match=said):
        run_passes(model(), (Pass("break", "for the test", breaking),))


def test_a_good_graph_is_well_formed() -> None:
    assert list(well_formed(model())) == []
