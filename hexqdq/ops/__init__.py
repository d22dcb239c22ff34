"""The ops that are quantized and those of them that the NPU has a form for, one row each."""

from __future__ import annotations

from hexqdq.ops import activation, conv, elementwise, matmul, movement, pool, reduce
from hexqdq.ops.rows import QUANTIZED_ONLY
from hexqdq.ops.spec import OpSpec
from hexqdq.ops.traits import QuantRow

__all__ = ["OPS", "QUANTIZED_ONLY", "QUANT_ROWS"]

OPS: dict[str, OpSpec] = {
    spec.op_type: spec
    for spec in (
        *conv.SPECS,
        *matmul.SPECS,
        *elementwise.SPECS,
        *activation.SPECS,
        *pool.SPECS,
        *reduce.SPECS,
        *movement.SPECS,
    )
}
"""Ops with an integer form, by type."""

QUANT_ROWS: dict[tuple[str, str], QuantRow] = {
    (row.domain, row.op_type): row for row in (*OPS.values(), *QUANTIZED_ONLY)
}
"""Every op that is quantized, by domain and type."""
