"""Gives every node a name of its own, and what inner graphs hold names that nothing outside has."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

_GRAPHS = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)


def name_nodes(model: ir.Model) -> int:
    """Names unnamed nodes after their op and output, and numbers doubled names; returns how many names changed.

    Nodes and values of an inner graph are named ``NODE.ATTRIBUTE.NAME``: whatever is added to the outer
    graph later is not hidden by them.
    """
    changed = _name_all(model.graph, "")
    for node in model.graph:
        changed += _name_inner(node)
    return changed


def inner_graphs(node: ir.Node) -> Iterator[tuple[str, ir.Graph]]:
    """The graphs that a node holds, with their attributes' names."""
    for attribute in node.attributes.values():
        if attribute.type in _GRAPHS:
            held = [attribute.as_graph()] if attribute.type is ir.AttributeType.GRAPH else attribute.as_graphs()
            yield from ((attribute.name if len(held) == 1 else f"{attribute.name}{i}", g) for i, g in enumerate(held))


def _name_all(graph: ir.Graph, prefix: str) -> int:
    used: set[str] = set()
    changed = 0
    for node in graph:
        base = _under(prefix, node.name or f"{node.op_type}_{node.outputs[0].name}")
        name, number = base, 2
        while name in used:
            name, number = f"{base}_{number}", number + 1
        used.add(name)
        if node.name != name:
            node.name = name
            changed += 1
    return changed


def _name_inner(outer: ir.Node) -> int:
    changed = 0
    for attribute, graph in inner_graphs(outer):
        prefix = f"{outer.name}.{attribute}."
        changed += _name_all(graph, prefix)
        values = (*graph.inputs, *graph.initializers.values(), *(v for node in graph for v in node.outputs))
        for value in dict.fromkeys(values):
            if value.name and value.name != _under(prefix, value.name):
                value.name = _under(prefix, value.name)
                changed += 1
        for node in graph:
            changed += _name_inner(node)
    return changed


def _under(prefix: str, name: str) -> str:
    return name if name.startswith(prefix) else f"{prefix}{name}"
