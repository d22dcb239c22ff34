"""Constants of -inf that hide entries from a Softmax: the only infinities that have a quantized form."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hexqdq.quantize.planning.graph import constant, is_movement

CARRIERS = ("Add", "Where")
"""Ops that hand -inf on as it is."""


def hidden_values(graph: ir.Graph) -> frozenset[ir.Value]:
    """The constants that hold -inf, and what carries it, where it ends in softmaxes only."""
    found: set[ir.Value] = set()
    for value in graph.initializers.values():
        carriers = (use.node for use in value.uses() if use.node.op_type in CARRIERS)
        if value.dtype == ir.DataType.FLOAT and any(carriers) and _hides(value):
            found |= _carried(value) or set()
    return frozenset(found)


def _hides(value: ir.Value) -> bool:
    values = constant(value)
    return values is not None and bool(values.size) and values.min() == -np.inf and bool((values < np.inf).all())


def _carried(start: ir.Value) -> set[ir.Value] | None:
    """Everything that -inf reaches from ``start``, None where something else than a Softmax reads it."""
    waiting, seen = [start], set[ir.Value]()
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        if value.is_graph_output():
            return None
        for use in value.uses():
            node = use.node
            if node.domain != "" or not (node.op_type in ("Softmax", *CARRIERS) or is_movement(node)):
                return None
            waiting += [] if node.op_type == "Softmax" else node.outputs
    return seen
