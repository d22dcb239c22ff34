"""Writes QuantizeLinear and DequantizeLinear into a graph; decides nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from hexqdq.opsets import raise_opset
from hexqdq.qtypes import QType, QuantParams
from hexqdq.quantize.writing.weights import QuantizedConstant

WIDE_OPSET = 21
"""The first whose QuantizeLinear and DequantizeLinear know 16 bits, 4 bits and blocks."""
RUNTIME_DOMAIN = "com.microsoft"
"""Has the same two ops with all types, for models that cannot be raised to WIDE_OPSET."""

Reader = tuple[ir.Node, int]
"""A node and the position at which it reads."""


class QdqWriter:
    """Edits one graph; ``made`` maps the names of new nodes to the node that each serves; ``domain`` is theirs."""

    def __init__(self, graph: ir.Graph) -> None:
        self.graph = graph
        self.domain = ""
        self.made: dict[str, str | None] = {}
        self._values, self._nodes = names_of(graph)
        self._stored: dict[tuple[ir.Value, QuantParams], tuple[NDArray[Any], list[ir.Value]]] = {}
        self._params: dict[tuple[str, QuantParams], tuple[ir.Value, ir.Value]] = {}

    def admit_all_types(self, model: ir.Model) -> None:
        """Makes the model one whose Q and DQ may have types of other widths than 8 bits."""
        if not raise_opset(model, WIDE_OPSET):
            self.domain = RUNTIME_DOMAIN
            model.graph.opset_imports.setdefault(RUNTIME_DOMAIN, 1)

    def pair(
        self,
        value: ir.Value,
        params: QuantParams,
        owner: str,
        readers: Collection[Reader] | None,
        name: str | None = None,
    ) -> ir.Value:
        """Q and DQ after a computed value; what the DQ gives.

        ``readers`` read that; None stands for everyone, graph outputs too. ``owner`` names the shared scale
        and zero point, ``name`` what is new where it is not the value.
        """
        name, producer = name or str(value.name), value.producer()
        uses = _uses(value) if readers is None else list(readers)
        if readers is None and value.is_graph_output():
            value.name = self._unique(f"{name}_float")
        scale, zero_point = self._shared(owner, params)
        quantized = self._node("QuantizeLinear", [value, scale, zero_point], f"{name}_quantized", params, value)
        integers = quantized.outputs[0]
        restored = self._node("DequantizeLinear", [integers, scale, zero_point], f"{name}_dequantized", None, value)
        self._place_after(producer, [quantized, restored], self._served(producer))
        for node, index in uses:
            node.replace_input_with(index, restored.outputs[0])
        if readers is None and value.is_graph_output():
            outputs = self.graph.outputs
            outputs[outputs.index(value)] = restored.outputs[0]
            restored.outputs[0].name = name
        return restored.outputs[0]

    def _served(self, producer: ir.Node | None) -> str | None:
        """The node that new ones after ``producer`` serve: for a Q or DQ of ours, the one that it serves."""
        name = str(producer.name) if producer is not None else None
        return self.made.get(name, name) if name is not None else None

    def twin(self, node: ir.Node) -> ir.Node:
        """A copy of a node with one output, after it, that nothing reads yet."""
        name = self._unique_node(f"{node.name}_twin")
        made = ir.Node(node.domain, node.op_type, node.inputs, node.attributes.values(), name=name, num_outputs=1)
        (output,), (like,) = made.outputs, node.outputs
        output.name = self._unique(f"{like.name}_twin")
        output.type = like.type
        output.shape = like.shape.copy() if like.shape is not None else None
        self.graph.insert_after(node, made)
        return made

    def constant(self, node: ir.Node, index: int, quantized: QuantizedConstant, name: str) -> None:
        """An integer initializer with its DQ in place of a constant input."""
        source = node.inputs[index]
        assert source is not None
        params = quantized.params
        inputs = self._integers(source, quantized, name)
        restored = self._node("DequantizeLinear", inputs, f"{name}_dequantized", None, inputs[0])
        if params.axis is not None:
            restored.attributes["axis"] = ir.AttrInt64("axis", params.axis)
        if params.block:
            restored.attributes["block_size"] = ir.AttrInt64("block_size", params.block)
        self.graph.insert_before(node, restored)
        self.made[str(restored.name)] = str(node.name)
        node.replace_input_with(index, restored.outputs[0])
        self._forget_unused(source)

    def _integers(self, source: ir.Value, quantized: QuantizedConstant, name: str) -> list[ir.Value]:
        """The integers with scale and zero point; readers of one constant that want the same share them."""
        key = (source, quantized.params)
        values, held = self._stored.get(key, (None, []))
        if values is not None and np.array_equal(values, quantized.values):
            return held
        stored = self._initializer(f"{name}_quantized", quantized.values, quantized.params)
        made = [stored, *self._shared(self._unique(name), quantized.params)]
        self._stored.setdefault(key, (quantized.values, made))
        return made

    def _forget_unused(self, value: ir.Value) -> None:
        """Drops a float initializer that nothing reads any more."""
        if value.is_initializer() and not value.uses() and not value.is_graph_output():
            del self.graph.initializers[str(value.name)]

    def _place_after(self, producer: ir.Node | None, nodes: Sequence[ir.Node], serves: str | None) -> None:
        if producer is not None:
            self.graph.insert_after(producer, nodes)
        else:
            self.graph.insert_before(self.graph[0], nodes)
        for node in nodes:
            self.made[str(node.name)] = serves

    def _node(
        self, op_type: str, inputs: list[ir.Value], name: str, params: QuantParams | None, like: ir.Value
    ) -> ir.Node:
        node = ir.node(op_type, inputs, domain=self.domain, name=self._unique_node(name))
        (output,) = node.outputs
        output.name = self._unique(name)
        output.type = ir.TensorType(_data_type(params) if params is not None else ir.DataType.FLOAT)
        output.shape = like.shape.copy() if like.shape is not None else None
        return node

    def _shared(self, owner: str, params: QuantParams) -> tuple[ir.Value, ir.Value]:
        """Scale and zero point initializers, one pair per owner."""
        key = (owner, params)
        if key not in self._params:
            scale, zero_point = params.scales(), params.zero_points()
            if params.is_per_tensor:
                scale, zero_point = scale.reshape(()), zero_point.reshape(())
            self._params[key] = (
                self._initializer(f"{owner}_scale", scale),
                self._initializer(f"{owner}_zero_point", zero_point, params),
            )
        return self._params[key]

    def _initializer(self, name: str, values: NDArray[np.generic], params: QuantParams | None = None) -> ir.Value:
        """An initializer of the values' own type, or of that of ``params``."""
        held = values if params is None else values.astype(_data_type(params).numpy())
        tensor = ir.tensor(held, name=self._unique(name))
        shape = ir.Shape(values.shape)
        value = ir.Value(name=tensor.name, type=ir.TensorType(tensor.dtype), shape=shape, const_value=tensor)
        self.graph.register_initializer(value)
        return value

    def _unique(self, base: str) -> str:
        return _free(base, self._values)

    def _unique_node(self, base: str) -> str:
        return _free(base, self._nodes)


def _uses(value: ir.Value) -> list[Reader]:
    """Everyone but the Q that a model came with."""
    return [(use.node, use.idx) for use in value.uses() if use.node.op_type != "QuantizeLinear"]


def names_of(graph: ir.Graph) -> tuple[set[str], set[str]]:
    """The names of values and of nodes, those of inner graphs too: what an inner graph names, it hides."""
    values, nodes = {str(v.name) for v in (*graph.inputs, *graph.initializers.values())}, set[str]()
    for node in ir.traversal.RecursiveGraphIterator(graph):
        nodes.add(str(node.name))
        values |= {str(value.name) for value in node.outputs}
        values |= {str(v.name) for inner in _inner_graphs(node) for v in (*inner.inputs, *inner.initializers.values())}
    return values, nodes


def _inner_graphs(node: ir.Node) -> Iterator[ir.Graph]:
    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH:
            yield attribute.as_graph()
        elif attribute.type == ir.AttributeType.GRAPHS:
            yield from attribute.as_graphs()


def _free(base: str, used: set[str]) -> str:
    name, number = base, 2
    while name in used:
        name, number = f"{base}_{number}", number + 1
    used.add(name)
    return name


def _data_type(params: QuantParams) -> ir.DataType:
    return ir.DataType.INT4 if params.dtype is QType.S4 else ir.DataType.from_numpy(params.dtype.numpy)
