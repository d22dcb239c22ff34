"""Constants near the lowest number that hide entries from a Softmax: two of them add up to -inf."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hexqdq.quantize.planning.graph import constant, is_movement

CARRIERS = ("Add", "Where")
"""Ops that hand a mask on as it is."""
LOWEST = -1e37
"""Few constants below it may be added within float32."""


def hidden_values(graph: ir.Graph) -> frozenset[ir.Value]:
    """The constants that hold such numbers, and what carries them, where all ends in softmaxes."""
    found: set[ir.Value] = set()
    for value in graph.initializers.values():
        carriers = (use.node for use in value.uses() if use.node.op_type in CARRIERS)
        if value.dtype == ir.DataType.FLOAT and any(carriers) and _hides(value):
            found |= _carried(value) or set()
    return frozenset(found)


def _hides(value: ir.Value) -> bool:
    values = constant(value)
    return values is not None and bool(values.size) and bool(values.min() < LOWEST) and bool((values < np.inf).all())


def _carried(start: ir.Value) -> set[ir.Value] | None:
    """Everything that a mask reaches from ``start``, None where something else than a Softmax reads it."""
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
