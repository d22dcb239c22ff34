"""What a recipe's overrides come to in a model: types, ranges and nodes by name."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

import onnx_ir as ir

from hexqdq.errors import UsageError
from hexqdq.import_.product import ImportedModel
from hexqdq.qtypes import QType
from hexqdq.quantize.overrides import Override
from hexqdq.quantize.planning.graph import only_consumer, results
from hexqdq.quantize.planning.plan import Range, plan
from hexqdq.quantize.planning.select import select
from hexqdq.quantize.recipe import Recipe

CLOSE = 5


@dataclass(frozen=True)
class Choices:
    """``types`` and ``ranges`` of activations by value name, ``weights`` types by node; the last word on them."""

    types: Mapping[str, QType] = field(default_factory=dict)
    ranges: Mapping[str, Range] = field(default_factory=dict)
    weights: Mapping[str, QType] = field(default_factory=dict)


def chosen(imported: ImportedModel, recipe: Recipe) -> tuple[Recipe, Choices]:
    """The recipe with the nodes that its overrides keep float, and the rest of what they say.

    Later overrides stand above earlier ones. Raises UsageError, with close names, where one is for
    nothing in the model, or for what stays float.
    """
    if not recipe.overrides:
        return recipe, Choices()
    kept = [str(node.name) for one in recipe.overrides if one.keep_float for node in _nodes(imported, one)]
    recipe = replace(recipe, keep_float=tuple(dict.fromkeys((*recipe.keep_float, *kept))))
    ends = _Ends(imported.model.graph, recipe)
    types: dict[str, QType] = {}
    ranges: dict[str, Range] = {}
    weights: dict[str, QType] = {}
    for override in recipe.overrides:
        nodes = _nodes(imported, override)
        if override.activations is not None:
            for name in ends.of(override, nodes):
                types.pop(name, None)  # so that the last one stands last
                types[name] = override.activations
        if override.low is not None and override.high is not None:
            ranges |= dict.fromkeys(ends.of(override, nodes), (float(override.low), float(override.high)))
        if override.weights is not None:
            weights |= dict.fromkeys((str(node.name) for node in nodes), override.weights)
    return recipe, Choices(types, ranges, weights)


def _nodes(imported: ImportedModel, override: Override) -> list[ir.Node]:
    """The nodes that an override is for: those that match, the tensor's maker, or the readers of weights."""
    graph = imported.model.graph
    if override.tensor is not None:
        return _nodes_of_tensor(graph, override, override.tensor)
    if override.op_type is not None:
        known = {node.op_type for node in graph}
        found = [node for node in graph if node.op_type == override.op_type]
    else:
        names = {node: (str(node.name), *imported.origin.get(str(node.name), ())) for node in graph}
        known = {name for several in names.values() for name in several}
        pattern = str(override.nodes)
        found = [node for node in graph if any(fnmatch.fnmatchcase(name, pattern) for name in names[node])]
    if not found:
        raise _nothing(override, known)
    return found


def _nodes_of_tensor(graph: ir.Graph, override: Override, name: str) -> list[ir.Node]:
    weights = graph.initializers.get(name)
    if weights is not None and override.weights is not None:
        return [use.node for use in weights.uses()]
    inputs = {str(value.name) for value in graph.inputs}
    makers = {str(value.name): node for node in graph for value in node.outputs}
    if name in makers:
        return [makers[name]]
    if name not in inputs:
        constants = graph.initializers if override.weights is not None else ()
        raise _nothing(override, {*inputs, *makers, *map(str, constants)})
    if override.keep_float or override.weights is not None:
        problem = "is for an input of the model; expected what a node makes"
        raise UsageError(f"override of {override.selector}", problem, "name the nodes instead")
    return []


def _nothing(override: Override, names: set[str]) -> UsageError:
    (wanted,) = (text for text in (override.tensor, override.nodes, override.op_type) if text is not None)
    known = sorted(names - {""})
    close = get_close_matches(wanted.replace("*", ""), known, CLOSE, 0.3) or known[:CLOSE]
    problem = f"is for nothing in the model; close names are {', '.join(map(repr, close))}"
    return UsageError(f"override of {override.selector}", problem, "`hexqdq explain` lists nodes")


class _Ends:
    """Which values have parameters, and which of them stands for one that folds."""

    def __init__(self, graph: ir.Graph, recipe: Recipe) -> None:
        selection = select(graph, recipe)
        self._planned = set(plan(selection).values)
        self._ends: dict[str, str] = {}
        for node, end in selection.ends.items():
            value: ir.Value | None = results(node)[0]
            while value is not None and value is not end:
                self._ends[str(value.name)] = str(end.name)
                reader = only_consumer(value)
                value = reader.outputs[0] if reader is not None else None

    def of(self, override: Override, nodes: Sequence[ir.Node]) -> list[str]:
        """The values with parameters that an override is for; raises UsageError where there is none."""
        names = [override.tensor] if override.tensor is not None else _results(nodes)
        ends = dict.fromkeys(self._ends.get(name, name) for name in names)
        found = [name for name in ends if name in self._planned]
        if not found:
            problem = "is for what stays float; expected quantized tensors"
            raise UsageError(f"override of {override.selector}", problem, "`hexqdq explain` says why it stays float")
        return found


def _results(nodes: Sequence[ir.Node]) -> list[str]:
    return [str(value.name) for node in nodes for value in results(node)]
