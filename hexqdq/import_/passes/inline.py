"""Replaces calls of the model's own functions by their bodies, and an If of a known condition by its branch."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import common

from hexqdq.import_.passes.constants import lift_constants


def inline_functions(model: ir.Model) -> int:
    """Inlines every call; returns how many functions there were."""
    count = len(model.functions)
    if count:
        common.InlinePass()(model)
        model.functions.clear()
    return count


def take_known_branches(model: ir.Model) -> int:
    """Puts the nodes of the branch that is taken in the place of each If whose condition is constant."""
    taken = 0
    for node in list(model.graph):
        condition = node.inputs[0] if node.op_type == "If" and node.domain == "" else None
        if condition is not None and condition.is_initializer() and condition.const_value is not None:
            holds = bool(condition.const_value.numpy().reshape(()))
            _take(model.graph, node, node.attributes["then_branch" if holds else "else_branch"].as_graph())
            taken += 1
    if taken:
        lift_constants(model)
    return taken


def _take(graph: ir.Graph, choice: ir.Node, branch: ir.Graph) -> None:
    """The branch's nodes before the If, whose outputs become Identity nodes of the branch's."""
    nodes, results = list(branch), list(branch.outputs)
    branch.outputs.clear()
    branch.remove(nodes)
    for value in list(branch.initializers.values()):
        del branch.initializers[str(value.name)]
        graph.register_initializer(value)
    graph.insert_before(choice, nodes)
    for output, result in zip(choice.outputs, results, strict=True):
        passing = ir.node("Identity", [result], name=f"{choice.name}_{output.name}")
        (passed,) = passing.outputs
        passed.name, passed.type, passed.shape = output.name, output.type or result.type, output.shape or result.shape
        output.name = f"{output.name}_of_branch"
        graph.insert_before(choice, passing)
        ir.convenience.replace_all_uses_with(output, passed, replace_graph_outputs=True)
    graph.remove(choice, safe=True)
