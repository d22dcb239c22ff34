"""Q and DQ that a model came with: their parameters stand, and what they restore is read as it is."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from hexqdq.qtypes import QType, QuantParams
from hexqdq.quantize.planning.graph import constant, input_at, is_movement

DOMAINS = ("", "com.microsoft")
TYPES = {
    ir.DataType.UINT8: QType.U8,
    ir.DataType.INT8: QType.S8,
    ir.DataType.UINT16: QType.U16,
    ir.DataType.INT16: QType.S16,
    ir.DataType.INT4: QType.S4,
    ir.DataType.INT32: QType.S32,
}


def is_quantize(node: ir.Node | None) -> bool:
    return node is not None and node.op_type == "QuantizeLinear" and node.domain in DOMAINS


def is_dequantize(node: ir.Node | None) -> bool:
    return node is not None and node.op_type == "DequantizeLinear" and node.domain in DOMAINS


def is_restored_constant(value: ir.Value | None) -> bool:
    """Whether a DQ makes the value of an initializer, or movements make it of such a value."""
    node = value.producer() if value is not None else None
    if node is None or not (is_dequantize(node) or is_movement(node)):
        return False
    inputs = (source for source in node.inputs[:1] if source is not None) if is_dequantize(node) else node.inputs
    held = [source for source in inputs if source is not None and constant(source) is None]
    return all(map(is_restored_constant, held)) and (is_dequantize(node) or bool(held))


def given_params(graph: ir.Graph) -> dict[str, QuantParams]:
    """The parameters of computed values that have a Q after them or a DQ before them, one scale each."""
    found: dict[str, QuantParams] = {}
    for node in graph:
        value = node.inputs[0] if is_quantize(node) else node.outputs[0] if is_dequantize(node) else None
        if value is None or constant(value) is not None or is_restored_constant(value):
            continue
        params = params_of(node)
        if params is not None and params.is_per_tensor:
            found.setdefault(str(value.name), params)
    return found


def params_of(node: ir.Node) -> QuantParams | None:
    """What a Q or DQ says; None where it is computed, in blocks or of a type that is not written here."""
    scale, zero_point = constant(input_at(node, 1)), constant(input_at(node, 2))
    integers = node.outputs[0] if is_quantize(node) else node.inputs[0]
    dtype = TYPES.get(integers.dtype) if integers is not None and integers.dtype is not None else None
    if scale is None or dtype is None or scale.dtype != np.float32 or scale.ndim > 1:
        return None
    zeros = np.zeros(scale.shape, np.int64) if zero_point is None else zero_point.astype(np.int64)
    if scale.size == 1:
        return QuantParams.per_tensor(dtype, float(scale.item()), int(zeros.item()))
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 1
    return QuantParams.per_channel(dtype, scale, zeros, axis)


def restored(value: ir.Value) -> ir.Value | None:
    """What a DQ gives of the integers that a Q makes of the value; None where there is no such pair."""
    for quantizer in quantizers(value):
        for use in quantizer.outputs[0].uses():
            if is_dequantize(use.node) and use.idx == 0:
                return use.node.outputs[0]
    return None


def quantizers(value: ir.Value) -> Iterator[ir.Node]:
    """The Q that read a value."""
    return (use.node for use in value.uses() if use.idx == 0 and is_quantize(use.node))
