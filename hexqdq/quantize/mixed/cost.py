"""What 16-bit activations cost: a node's work, from the shapes of the float graph."""

from __future__ import annotations

import math
from dataclasses import dataclass

import onnx_ir as ir

from hexqdq.quantize.planning.graph import is_float
from hexqdq.target import HVX_BYTES_PER_PACKET, HVX_MACS_PER_PACKET


@dataclass(frozen=True)
class Cost:
    """Multiply-accumulates of an inference, and elements read and written."""

    macs: int = 0
    elements: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.macs + other.macs, self.elements + other.elements)

    def packets(self) -> float:
        """HVX packets that a second byte of each activation adds: its products, its loads and stores.

        A 16-bit activation is multiplied as two planes of bytes, on HVX and on HMX alike.
        """
        return self.macs / HVX_MACS_PER_PACKET + self.elements / HVX_BYTES_PER_PACKET


def cost_of(node: ir.Node, end: ir.Value | None) -> Cost:
    """The cost of a node that writes ``end`` after what folds into it, of a movement where that is None."""
    read = sum(_size(value) for value in node.inputs if value is not None and is_float(value) and not _is_weight(value))
    written = _size(end) if end is not None else sum(_size(value) for value in node.outputs if is_float(value))
    return Cost(macs(node), read + written)


def macs(node: ir.Node) -> int:
    """Multiply-accumulates of a contraction or a recurrence, 0 for other ops."""
    data, weights = _shape(node, 0), _shape(node, 1)
    if not data or not weights:
        return 0
    if node.op_type == "Conv":
        return _size(node.outputs[0]) * math.prod(weights[1:])
    if node.op_type == "ConvTranspose":
        return math.prod(data) * math.prod(weights[1:])
    if node.op_type == "MatMul":
        return _size(node.outputs[0]) * data[-1]
    if node.op_type == "Gemm":
        return math.prod(data) * _shape(node, 1)[0 if _is_set(node, "transB") else 1]
    if node.op_type in ("LSTM", "GRU", "RNN"):
        steps, batch, columns = data
        return steps * batch * weights[0] * weights[1] * (columns + _shape(node, 2)[-1])
    return 0


def _is_set(node: ir.Node, name: str) -> bool:
    return name in node.attributes and node.attributes[name].as_int() != 0


def _is_weight(value: ir.Value) -> bool:
    return value.is_initializer()


def _shape(node: ir.Node, index: int) -> tuple[int, ...]:
    value = node.inputs[index] if index < len(node.inputs) else None
    return value.shape.numpy() if value is not None and value.shape is not None else ()


def _size(value: ir.Value) -> int:
    return math.prod(value.shape.numpy()) if value.shape is not None else 0
