"""Gives every node a name of its own."""

from __future__ import annotations

import onnx_ir as ir


def name_nodes(model: ir.Model) -> int:
    """Names unnamed nodes after their op and output, and numbers doubled names; returns how many changed."""
    used: set[str] = set()
    changed = 0
    for node in model.graph:
        base = node.name or f"{node.op_type}_{node.outputs[0].name}"
        name, number = base, 2
        while name in used:
            name, number = f"{base}_{number}", number + 1
        used.add(name)
        if node.name != name:
            node.name = name
            changed += 1
    return changed
