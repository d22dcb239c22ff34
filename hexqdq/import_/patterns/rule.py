"""A rule: what it finds at a node, and what takes the place of what it found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from hexqdq.opsets import raise_opset

AXES_AS_INPUT = 18
"""The opset since which reductions take their axes as an input; ReduceSum does at 13 already."""
STANDS_FOR = "stands_for"
"""Key of a node's metadata: the nodes that it took the place of, as (name, names of outputs)."""
Operand = ir.Value | NDArray[Any] | None


class Builder:
    """Makes the nodes that replace a node ``root``; the last one made takes over its name and output."""

    def __init__(self, graph: ir.Graph, root: ir.Node, used: set[str]) -> None:
        self.graph, self.root, self._used = graph, root, used
        self.made: list[ir.Node] = []

    def op(
        self,
        op_type: str,
        inputs: Sequence[Operand],
        shape: Sequence[int],
        attributes: Mapping[str, float | int | str | Sequence[int]] | None = None,
        dtype: ir.DataType | None = ir.DataType.FLOAT,
    ) -> ir.Value:
        """One node more; arrays among its inputs become initializers."""
        name = self._free(f"{self.root.name}_{op_type.lower()}")
        values = [self._constant(i, name) if isinstance(i, np.ndarray) else i for i in inputs]
        node = ir.node(op_type, values, dict(attributes or {}), name=name)
        (output,) = node.outputs
        output.name, output.shape = name, ir.Shape(tuple(shape))
        output.type = ir.TensorType(dtype) if dtype is not None else None
        self.made.append(node)
        return output

    def reduce(
        self, op_type: str, data: ir.Value, axes: Sequence[int], keeps_axes: bool, shape: Sequence[int]
    ) -> ir.Value:
        """A reduction, its axes where the graph's opset has them."""
        kept: dict[str, int | Sequence[int]] = {"keepdims": int(keeps_axes)}
        if op_type != "ReduceSum" and self.graph.opset_imports[""] < AXES_AS_INPUT:
            return self.op(op_type, [data], shape, {"axes": list(axes), **kept})
        return self.op(op_type, [data, np.array(axes, np.int64)], shape, kept)

    def _constant(self, values: NDArray[Any], base: str) -> ir.Value:
        tensor = ir.tensor(values, name=self._free(f"{base}_constant"))
        shape = ir.Shape(values.shape)
        value = ir.Value(name=tensor.name, type=ir.TensorType(tensor.dtype), shape=shape, const_value=tensor)
        self.graph.register_initializer(value)
        return value

    def _free(self, base: str) -> str:
        """A name that neither a node nor a value has."""
        name, number = base, 2
        while name in self._used:
            name, number = f"{base}_{number}", number + 1
        self._used.add(name)
        return name


def _names(graph: ir.Graph) -> set[str]:
    values = (*graph.inputs, *graph.initializers.values(), *(value for node in graph for value in node.outputs))
    return {str(value.name) for value in values} | {str(node.name) for node in graph}


@dataclass(frozen=True, eq=False)
class Found:
    """``nodes`` end in the root and are what ``build`` replaces; ``build`` returns the value in place of its output.

    ``opset`` is the lowest that has the ops it writes.
    """

    nodes: tuple[ir.Node, ...]
    build: Callable[[Builder], ir.Value]
    opset: int = 17


Rule = Callable[[ir.Node], Found | None]


def apply_rules(model: ir.Model, rules: Iterable[Rule]) -> int:
    """Every rule in order at every node, until none finds anything; returns how many places were rewritten.

    The last node comes first, so that the longest match wins.
    """
    rules = tuple(rules)
    changes = 0
    while made := sum(_apply(model, rule) for rule in rules):
        changes += made
    return changes


def _apply(model: ir.Model, rule: Rule) -> int:
    used = _names(model.graph)
    changes = 0
    for node in reversed(list(model.graph)):
        found = rule(node) if node.graph is not None and node.domain == "" else None
        if found is not None and raise_opset(model, found.opset):
            changes += _replace(Builder(model.graph, node, used), found)
    return changes


def _replace(builder: Builder, found: Found) -> bool:
    graph, root = builder.graph, builder.root
    result = found.build(builder)
    output, name, renames = root.outputs[0], root.outputs[0].name, root.outputs[0].is_graph_output()
    if not builder.made and renames and (result.producer() is None or result.is_graph_output()):
        return False
    graph.insert_before(root, builder.made)
    _take_over(builder.made, root, found)
    if builder.made or renames:
        output.name = f"{name}_replaced"
    ir.convenience.replace_all_uses_with(output, result, replace_graph_outputs=renames)
    prune(graph, root)
    if builder.made or renames:
        result.name = name
    return True


def _take_over(made: Sequence[ir.Node], root: ir.Node, found: Found) -> None:
    """The new nodes stand for the old ones; the last of them has the root's name."""
    stands_for = [entry for node in found.nodes for entry in node.meta.get(STANDS_FOR, [])]
    stands_for += [(str(node.name), tuple(str(v.name) for v in node.outputs)) for node in found.nodes]
    for node in made:
        node.meta[STANDS_FOR] = list(dict.fromkeys(stands_for))
    if made:
        name, root.name = root.name, f"{root.name}_replaced"
        made[-1].name = name


def prune(graph: ir.Graph, node: ir.Node) -> None:
    """Removes a node that nothing reads, and what then is read by nothing."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if one.graph is None or any(value.uses() or value.is_graph_output() for value in one.outputs):
            continue
        sources = [value.producer() for value in one.inputs if value is not None]
        graph.remove(one, safe=True)
        waiting += [source for source in sources if source is not None]
