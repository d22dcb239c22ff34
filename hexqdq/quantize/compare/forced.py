"""The float model fed, at every value, with what the quantized one has there.

What it computes at a value is the error that its maker inherits; the rest of the quantized model's
error there is introduced by that node itself, by its weights and its encoding.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import onnx_ir as ir


@dataclass(frozen=True)
class Forced:
    """``results`` maps each value to what computes it here; ``fed`` are the values that are inputs."""

    model: ir.Model
    results: dict[str, str]
    fed: frozenset[str]


def forced(model: ir.Model, names: Collection[str]) -> Forced:
    """The model cut at the named values; what lies between them is computed as it was."""
    made = model.clone()
    graph = made.graph
    taken = {str(value.name) for node in graph for value in node.outputs} | set(graph.initializers)
    results: dict[str, str] = {}
    for node in graph:
        for output in node.outputs:
            name = str(output.name)
            if name in names:
                results[name] = _cut(graph, output, taken)
    fed = frozenset(str(value.name) for value in graph.inputs)
    return Forced(made, results, fed)


def _cut(graph: ir.Graph, output: ir.Value, taken: set[str]) -> str:
    """Gives the value another name, and its readers an input of the old one."""
    name = str(output.name)
    output.name = _free(f"{name}_forced", taken)
    uses = [(use.node, use.idx) for use in output.uses()]
    if uses:
        fed = ir.Value(name=name, type=output.type, shape=output.shape)
        graph.inputs.append(fed)
        for node, index in uses:
            node.replace_input_with(index, fed)
    return str(output.name)


def _free(base: str, taken: set[str]) -> str:
    name, number = base, 2
    while name in taken:
        name, number = f"{base}_{number}", number + 1
    taken.add(name)
    return name
