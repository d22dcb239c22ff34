"""Chains: ops between one DQ and one Q whose float values are all functions of the DQ's input and constants."""

from __future__ import annotations

import math
from dataclasses import dataclass

import onnx_ir as ir

from hexqdq.ops.elementwise.functions import ALL
from hexqdq.ops.elementwise.program import INPUT, Program, Step
from hexqdq.partition.attributes import attributes_of
from hexqdq.partition.view import GraphView, is_dequantize, is_quantize, name_of

Operand = int | float | None
OLD_ATTRIBUTES = ("min", "max", "consumed_inputs", "broadcast", "axis")
"""Attributes of old opsets that change what an op computes."""


@dataclass(frozen=True, eq=False)
class Chain:
    """``nodes`` are the program's steps; ``source`` is the DQ that feeds them."""

    source: ir.Node
    program: Program
    nodes: tuple[ir.Node, ...]
    dequantizers: tuple[ir.Node, ...]
    quantizer: ir.Node


def find_chain(view: GraphView, head: ir.Node) -> Chain | None:
    """The chain that starts with ``head``, None where there is none."""
    sources = {name_of(node.inputs[0]): node for node in _dequantizers(head) if view.constant(node.inputs[0]) is None}
    if head.op_type not in ALL or len(sources) != 1:
        return None
    (dequantizer,) = sources.values()
    search = _Search(view, dequantizer)
    node = head
    while True:
        if search.step_of(node) is None:
            return None
        value = node.outputs[0]
        readers = view.readers(value)
        if not readers or name_of(value) in view.outputs:
            return None
        node = readers[-1]
        if is_quantize(node):
            return search.chain(node) if len(readers) == 1 else None


def _dequantizers(node: ir.Node) -> list[ir.Node]:
    made = [value.producer() for value in node.inputs if value is not None]
    return [producer for producer in made if producer is not None and is_dequantize(producer)]


class _Search:
    """The steps found so far."""

    def __init__(self, view: GraphView, dequantizer: ir.Node) -> None:
        self.view = view
        self.dequantizer = dequantizer
        self.used: dict[ir.Node, None] = {}
        self.nodes: list[ir.Node] = []
        self.steps: list[Step] = []

    def step_of(self, node: ir.Node) -> int | None:
        """The number of the node's step, made with those that it needs; None where it does not belong to the chain."""
        if node in self.nodes:
            return self.nodes.index(node)
        if node.op_type not in ALL or node.domain != "" or len(node.outputs) != 1 or not self._same_shape(node):
            return None
        attributes = attributes_of(node)
        if any(name in OLD_ATTRIBUTES or not isinstance(value, int | float) for name, value in attributes.items()):
            return None
        operands: list[Operand] = []
        for value in node.inputs:
            operand = None if value is None else self._operand(value)
            if value is not None and operand is None:
                return None
            operands.append(operand)
        self.nodes.append(node)
        self.steps.append(Step(node.op_type, tuple(operands), attributes))
        return len(self.steps) - 1

    def _same_shape(self, node: ir.Node) -> bool:
        return self.view.shape(node.outputs[0]) == self.view.shape(self.dequantizer.outputs[0])

    def _operand(self, value: ir.Value) -> Operand:
        number = self.view.real_constant(value)
        producer = value.producer()
        if number is not None:
            finite = number.size == 1 and math.isfinite(number.reshape(()))
            if finite and producer is not None and is_dequantize(producer):
                self.used[producer] = None
            return float(number.reshape(())) if finite else None
        if producer is None:
            return None
        if not is_dequantize(producer):
            return self.step_of(producer)
        if not self._reads_source(producer):
            return None
        self.used[producer] = None
        return INPUT

    def _reads_source(self, dequantizer: ir.Node) -> bool:
        same = dequantizer.inputs[0] is self.dequantizer.inputs[0]
        return same and self.view.params(dequantizer) == self.view.params(self.dequantizer)

    def chain(self, quantizer: ir.Node) -> Chain | None:
        """The chain up to ``quantizer``; None where a value between its ops is read elsewhere too."""
        inside = {*self.nodes, quantizer}
        for node in self.nodes:
            value = node.outputs[0]
            if name_of(value) in self.view.outputs or not inside.issuperset(self.view.readers(value)):
                return None
        return Chain(self.dequantizer, Program(tuple(self.steps)), tuple(self.nodes), tuple(self.used), quantizer)
