"""Folds what scales and shifts channels into the contractions after it, where nothing but contractions reads it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from hexqdq.import_.passes.affine import add_initializer, constant, per_channel

Floats = NDArray[np.float64]

MOST_SHIFT = 1e3
"""A shift may be this many times the factor that it is divided by."""


@dataclass(frozen=True, eq=False)
class Change:
    """``data * values`` or ``data + values`` per channel (axis 1), float64 [channels]."""

    node: ir.Node
    data: ir.Value
    values: Floats


def fold_forward(model: ir.Model) -> int:
    """Scales go into the weights after them, shifts into their bias where no padding stands between.

    ``W * (a x) = (W a) * x``, ``W * (x + b) + c = W * x + (c + W b)``; before padding ``a x + b`` becomes
    ``a (x + b / a)`` first, so that only the shift stays.
    """
    graph, changes = model.graph, 0
    for node in reversed(list(graph)):
        shift = _change(node, "Add")
        if shift is not None and _readers(node, padded=False):
            _shift(graph, shift)
            changes += 1
        elif shift is not None and _readers(node, padded=True):
            changes += _swap(graph, shift)
        scale = _change(node, "Mul") if node.graph is not None else None
        if scale is not None and _readers(node, padded=True):
            _scale(graph, scale)
            changes += 1
    return changes


def _change(node: ir.Node, op_type: str) -> Change | None:
    if node.op_type != op_type or node.domain != "":
        return None
    for data, other in (node.inputs, node.inputs[::-1]):
        values = per_channel(data, constant(other), node.outputs[0])
        if data is not None and values is not None:
            return Change(node, data, values)
    return None


def _readers(node: ir.Node, *, padded: bool) -> list[ir.Node]:
    """The Convs of constant weights that read the result as their data; none where anything else reads it."""
    output = node.outputs[0]
    uses = output.uses()
    if output.is_graph_output() or not all(use.idx == 0 and _takes(use.node, padded=padded) for use in uses):
        return []
    return [use.node for use in uses]


def _takes(node: ir.Node, *, padded: bool) -> bool:
    if node.op_type != "Conv" or node.domain != "" or constant(node.inputs[1]) is None:
        return False
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    pads = node.attributes["pads"].as_ints() if "pads" in node.attributes else ()
    known = "auto_pad" not in node.attributes or node.attributes["auto_pad"].as_string() == "NOTSET"
    return known and (bias is None or constant(bias) is not None) and (padded or not any(pads))


def _scale(graph: ir.Graph, change: Change) -> None:
    for conv in _readers(change.node, padded=True):
        weights, columns = _weights(conv, change.values)
        _replace(graph, conv, 1, "folded_weight", weights * columns)
    _leave_out(graph, change)


def _shift(graph: ir.Graph, change: Change) -> None:
    for conv in _readers(change.node, padded=False):
        weights, columns = _weights(conv, change.values)
        added = (weights * columns).reshape(len(weights), -1).sum(axis=1)
        bias = constant(conv.inputs[2]) if len(conv.inputs) > 2 else None
        conv.resize_inputs(3)
        _replace(graph, conv, 2, "folded_bias", added if bias is None else bias.astype(np.float64) + added)
    _leave_out(graph, change)


def _weights(conv: ir.Node, values: Floats) -> tuple[Floats, Floats]:
    """The weights [out, in / groups, ...] and the values of the channels that they meet, which broadcast to them."""
    held = constant(conv.inputs[1])
    assert held is not None
    group = conv.attributes["group"].as_int() if "group" in conv.attributes else 1
    met = np.repeat(values.reshape(group, -1), len(held) // group, axis=0)
    return held.astype(np.float64), met.reshape(*met.shape, *(1,) * (held.ndim - 2))


def _replace(graph: ir.Graph, conv: ir.Node, index: int, what: str, values: Floats) -> None:
    conv.replace_input_with(index, add_initializer(graph, f"{conv.name}_{what}", values))


def _leave_out(graph: ir.Graph, change: Change) -> None:
    ir.convenience.replace_all_uses_with(change.node.outputs[0], change.data)
    graph.remove(change.node, safe=True)


def _swap(graph: ir.Graph, shift: Change) -> bool:
    """``a x + b`` with a number a as ``a (x + b / a)``: the Mul takes the place of the Add."""
    producer = shift.data.producer()
    scale = _change(producer, "Mul") if producer is not None else None
    if scale is None or len(shift.data.uses()) != 1 or shift.data.is_graph_output():
        return False
    if not scale.values.all() or np.abs(shift.values / scale.values).max() > MOST_SHIFT:
        return False
    rank = len(shift.data.shape or ())
    values = (shift.values / scale.values).reshape(-1, *(1,) * (rank - 2))
    moved = add_initializer(graph, f"{shift.node.name}_unscaled", values)
    own = next(i for i, value in enumerate(shift.node.inputs) if value is not shift.data)
    shift.node.replace_input_with(own, moved)
    shift.node.replace_input_with(1 - own, scale.data)
    for conv in _readers(shift.node, padded=True):
        weights, columns = _weights(conv, scale.values)
        _replace(graph, conv, 1, "folded_weight", weights * columns)
    graph.remove(scale.node, safe=True)
    shift.node.outputs[0].name = f"{shift.node.outputs[0].name}_unscaled"
    return True
