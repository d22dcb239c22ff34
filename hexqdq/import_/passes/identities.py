"""Removes nodes that change nothing at inference: Identity, Dropout, a Cast to the type at hand."""

from __future__ import annotations

import onnx_ir as ir


def remove_identities(model: ir.Model) -> int:
    """Lets consumers read the input of such a node; one between an input and an output of the graph stays."""
    removed = 0
    for node in list(model.graph):
        if not _is_identity(node):
            continue
        source, result = node.inputs[0], node.outputs[0]
        assert source is not None
        name, renames = result.name, result.is_graph_output()
        if renames and (source.producer() is None or source.is_graph_output()):
            continue
        if renames:
            result.name = f"{name}_before_removal"
        ir.convenience.replace_all_uses_with(result, source, replace_graph_outputs=renames)
        model.graph.remove(node, safe=True)
        if renames:
            source.name = name
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
    """Gives a graph output that is a constant, or listed twice, a node of its own; names stay where they can."""
    graph, added = model.graph, 0
    seen: set[ir.Value] = set()
    for index, value in enumerate(list(graph.outputs)):
        name = str(value.name)
        if value.is_initializer():
            value = _under_another_name(graph, value)
        elif value in seen:
            name = f"{name}_{index}"
        else:
            seen.add(value)
            continue
        node = ir.node("Identity", [value], name=f"{name}_output")
        (result,) = node.outputs
        result.name, result.type, result.shape = name, value.type, value.shape
        graph.append(node)
        graph.outputs[index] = result
        added += 1
    return added


def _under_another_name(graph: ir.Graph, constant: ir.Value) -> ir.Value:
    """The initializer as ``NAME_constant``, so that an output can have its name; the source's tensor stays as it is."""
    tensor = constant.const_value
    assert tensor is not None
    copied = ir.tensor(tensor.numpy(), dtype=tensor.dtype, name=f"{constant.name}_constant")
    renamed = ir.Value(name=copied.name, type=constant.type, shape=constant.shape, const_value=copied)
    ir.convenience.replace_all_uses_with(constant, renamed, replace_graph_outputs=True)
    del graph.initializers[str(constant.name)]
    graph.register_initializer(renamed)
    return renamed
