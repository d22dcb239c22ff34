"""Removes nodes that change nothing at inference: Identity, Dropout, a Cast to the type at hand."""

from __future__ import annotations

import onnx_ir as ir


def remove_identities(model: ir.Model) -> int:
    """Lets consumers read the input of such a node; one that only renames a graph output stays."""
    removed = 0
    for node in list(model.graph):
        if not _is_identity(node):
            continue
        source, result = node.inputs[0], node.outputs[0]
        assert source is not None
        if result.is_graph_output():
            continue
        ir.convenience.replace_all_uses_with(result, source)
        model.graph.remove(node, safe=True)
        removed += 1
    return removed


def _is_identity(node: ir.Node) -> bool:
    if node.domain != "" or not node.inputs or node.inputs[0] is None:
        return False
    match node.op_type:
        case "Identity":
            return True
        case "Dropout":
            return len(node.inputs) < 3 and not any(output.uses() for output in node.outputs[1:])
        case "Cast":
            return node.inputs[0].dtype is not None and node.inputs[0].dtype == node.outputs[0].dtype
    return False


def name_outputs(model: ir.Model) -> int:
    """Gives each graph output a node of its own where it is an input, a constant or listed twice."""
    graph, added, seen = model.graph, 0, set()
    for index, value in enumerate(list(graph.outputs)):
        if value.producer() is not None and value not in seen:
            seen.add(value)
            continue
        node = ir.node("Identity", [value], name=f"{value.name}_output{index}")
        (result,) = node.outputs
        result.name = f"{value.name}_output{index}"
        result.type, result.shape = value.type, value.shape
        graph.append(node)
        graph.outputs[index] = result
        added += 1
    return added
