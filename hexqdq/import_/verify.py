"""What must hold of an imported model."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir


def unknown_values(model: ir.Model) -> Iterator[str]:
    """Values without a type or a static shape, as sentences."""
    for node in model.graph:
        for value in node.outputs:
            if not value.name:
                continue
            where = f"value {value.name!r} of node {node.name!r} ({node.op_type})"
            if value.dtype is None:
                yield f"{where} has no known element type"
            elif value.shape is None or not value.shape.is_static():
                yield f"{where} has no static shape"
