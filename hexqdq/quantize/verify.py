"""What must hold of a QDQ model that hexqdq wrote."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from hexqdq.quantize.planning.graph import QDQ_OPS, constant


def qdq_problems(model: ir.Model) -> Iterator[str]:
    """Q and DQ without constant parameters, and Q whose integers nothing reads, as sentences."""
    for node in model.graph:
        if node.op_type not in QDQ_OPS:
            continue
        if any(constant(value) is None for value in node.inputs[1:]):
            yield f"{node.op_type} {node.name!r} has parameters that are not constant"
        (output,) = node.outputs
        if not output.uses() and not output.is_graph_output():
            yield f"nothing reads {output.name!r} of {node.op_type} {node.name!r}"
