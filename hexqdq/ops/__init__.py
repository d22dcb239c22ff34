"""The ops that the NPU has a form for, one row each."""

from __future__ import annotations

from hexqdq.ops import activation, conv, elementwise, matmul, movement, pool, reduce
from hexqdq.ops.spec import OpSpec

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
