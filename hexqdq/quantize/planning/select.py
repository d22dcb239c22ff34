"""Decides which nodes are quantized, which fold into their producer and which stay float, with the reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from hexqdq.errors import UsageError
from hexqdq.ops.traits import Trait
from hexqdq.quantize.planning.given import is_dequantize, is_quantize, is_restored_constant
from hexqdq.quantize.planning.graph import (
    bias_add,
    constant,
    gives_indices,
    inner_nodes,
    input_at,
    is_float,
    is_movement,
    only_consumer,
    results,
    spec_of,
)
from hexqdq.quantize.recipe import Recipe
from hexqdq.report import Decision

STAYS = ", and inner graphs stay float"


@dataclass
class Selection:
    """``ends`` maps each quantized node to the value its Q follows; the rest is in the op's order.

    ``further`` are the other results of nodes that have several;
    ``bias_adds`` maps a MatMul to its Add and the index of the constant; ``movements`` are
    candidates until the plan knows which carry quantized data; ``indices`` read quantized data and
    give integers.
    """

    ends: dict[ir.Node, ir.Value] = field(default_factory=dict)
    further: dict[ir.Node, tuple[ir.Value, ...]] = field(default_factory=dict)
    bias_adds: dict[ir.Node, tuple[ir.Node, int]] = field(default_factory=dict)
    folded: set[ir.Node] = field(default_factory=set)
    movements: list[ir.Node] = field(default_factory=list)
    indices: list[ir.Node] = field(default_factory=list)
    reasons: dict[ir.Node, str] = field(default_factory=dict)

    def results(self) -> tuple[ir.Value, ...]:
        """What quantized arithmetic makes: the values that get a Q for everyone."""
        return (*self.ends.values(), *(value for values in self.further.values() for value in values))


def select(graph: ir.Graph, recipe: Recipe) -> Selection:
    """Every arithmetic op that has a row is quantized; activations and bias additions fold.

    Raises UsageError where ``keep_float`` names no node.
    """
    unknown = set(recipe.keep_float) - {str(node.name) for node in graph}
    if unknown:
        problem = f"names {min(unknown)!r}, which is no node of the model; expected names of nodes"
        raise UsageError("recipe option 'keep_float'", problem, "`hexqdq explain` lists them")
    selection = Selection()
    for node in graph:
        if (
            node in selection.folded
            or is_quantize(node)
            or is_dequantize(node)
            or is_restored_constant(node.outputs[0])
        ):
            continue
        reason = _reason_to_stay(node, recipe)
        if reason is not None:
            selection.reasons[node] = reason
        elif is_movement(node):
            selection.movements.append(node)
        elif gives_indices(node):
            selection.indices.append(node)
        else:
            made = results(node)
            selection.ends[node] = _fold(node, selection, recipe) if len(made) == 1 else made[0]
            selection.further[node] = tuple(made[1:])
    return selection


def _reason_to_stay(node: ir.Node, recipe: Recipe) -> str | None:
    if not any(is_float(value) for value in (*node.inputs, *node.outputs)):
        return "its data are not float32, so there is nothing to quantize"
    if next(inner_nodes(node), None) is not None:
        return f"{node.op_type} holds graphs{STAYS}"
    spec = spec_of(node)
    if spec is None:
        return f"{node.op_type} is not among the ops that are quantized, so it stays float"
    if node.name in recipe.keep_float:
        return "the recipe keeps this node float"
    made = results(node)
    if len(made) != 1 and not spec.many_outputs:
        return f"{node.op_type} with {len(made)} outputs is not quantized, so it stays float"
    data = [value for i in spec.data_positions(len(node.inputs)) if (value := input_at(node, i)) is not None]
    if not all(is_float(value) for value in (*data, *(() if gives_indices(node) else made))):
        return "its data are not float32, so there is nothing to quantize"
    held = (value is None or constant(value) is not None or is_restored_constant(value) for value in node.inputs)
    if all(held):
        return "its data are constant, so there is nothing to calibrate"
    constants = (values for value in data if (values := constant(value)) is not None)
    if not all(np.isfinite(values).all() for values in constants):
        return "its constants are not finite, so no scale holds them"
    return None


def _fold(node: ir.Node, selection: Selection, recipe: Recipe) -> ir.Value:
    """Folds what follows into the node; the value that gets the Q."""
    (end,) = results(node)
    found = bias_add(node)
    if found is not None and found[0].name not in recipe.keep_float:
        selection.bias_adds[node] = found
        selection.folded.add(found[0])
        end = found[0].outputs[0]
    spec = spec_of(node)
    assert spec is not None
    if spec.activation or spec.trait is Trait.FIXED_RANGE:
        return end
    while (following := only_consumer(end)) is not None and is_foldable(following, end, recipe):
        selection.folded.add(following)
        end = following.outputs[0]
    return end


def is_foldable(node: ir.Node, data: ir.Value, recipe: Recipe) -> bool:
    """Whether the node is an activation that folds into the maker of ``data``."""
    spec = spec_of(node)
    if spec is None or not spec.activation or node.inputs[0] is not data or node.name in recipe.keep_float:
        return False
    return all(value is None or constant(value) is not None for value in node.inputs[1:])


def decisions(selection: Selection, still: Iterable[ir.Node]) -> tuple[Decision, ...]:
    """One record per node that stays float; ``still`` are movements between float values."""
    reasons = dict(selection.reasons)
    for node in still:
        reasons[node] = f"{node.op_type} moves float values that no quantized op reads or writes"
    for node in list(reasons):
        reasons |= dict.fromkeys(inner_nodes(node), f"it lies inside {node.op_type} {node.name!r}{STAYS}")
    return tuple(Decision(str(n.name), n.op_type, None, reason) for n, reason in reasons.items())
