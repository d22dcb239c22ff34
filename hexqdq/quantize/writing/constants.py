"""Constant operands as far as their node's result can show them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from hexqdq.qtypes import QType, QuantParams
from hexqdq.quantize.planning.encodings import Encodings, span_params
from hexqdq.quantize.planning.graph import constant, input_at
from hexqdq.quantize.planning.plan import Range

Array = NDArray[Any]


def shown(node: ir.Node, index: int, values: Array, encodings: Encodings) -> Array:
    """A constant operand of Add, Sub or Where without what saturates in the result whatever the other operand is.

    With a result in [l, h] and the other operand in [a, b], a + c is l for every c below l - b. A mask of
    -1e4 so becomes one that its scale can hold next to what it is added to.
    """
    written = encodings.plan.writes.get(node)
    if written is None or node.domain != "" or node.op_type not in ("Add", "Sub", "Where"):
        return values
    result = reach(encodings.groups[written[0]])
    if node.op_type == "Where":
        return _within(values, result)
    other = input_at(node, 1 - index)
    if other is None or str(other.name) not in encodings.plan.values or constant(other) is not None:
        return values
    (low, high), (least, most) = result, reach(encodings.read(node, other))
    if node.op_type == "Add":
        return _within(values, (low - most, high - least))
    return _within(values, (low + least, high + most) if index == 0 else (least - high, most - low))


def reach(params: QuantParams) -> Range:
    """The real values of the lowest and highest integer."""
    scale, zero_point = params.scale[0], params.zero_point[0]
    return (params.dtype.low - zero_point) * scale, (params.dtype.high - zero_point) * scale


def _within(values: Array, span: Range) -> Array:
    low, high = (np.float32(end) for end in span)
    return np.asarray(np.minimum(np.maximum(values, low), high), values.dtype)


def operand_params(node: ir.Node, values: Array, dtype: QType) -> QuantParams:
    """Parameters that cover a constant operand.

    They hold a single exponent exactly: a negative number to the power of 1.9999999 has no value.
    """
    low, high = float(values.min()), float(values.max())
    if node.op_type != "Pow" or low != high or abs(low) < 2.0**-24:
        return span_params(low, high, dtype)
    half = dtype.bits - 1
    zero_point = dtype.low if low > 0 else dtype.low + (1 << half)
    return QuantParams.per_tensor(dtype, math.ldexp(abs(low), -half), zero_point)
