"""A QDQ graph as partition reads it: who makes and reads each value, what Q and DQ mean, what is constant."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from hexqdq import numerics
from hexqdq.errors import QuantizationError
from hexqdq.ops.unit import Tensor
from hexqdq.qtypes import QType, QuantParams

Array = NDArray[Any]

_QDQ_DOMAINS = ("", "com.microsoft")
_GRAPHS = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)


def is_quantize(node: ir.Node | None) -> bool:
    return node is not None and node.op_type == "QuantizeLinear" and node.domain in _QDQ_DOMAINS


def is_dequantize(node: ir.Node | None) -> bool:
    return node is not None and node.op_type == "DequantizeLinear" and node.domain in _QDQ_DOMAINS


def name_of(value: ir.Value | None) -> str:
    """The name of a value that is there."""
    assert value is not None and value.name is not None
    return value.name


def qtype_of(value: ir.Value) -> QType | None:
    """The value's element type, None where units have no such type."""
    found = [t for t in QType if value.dtype is not None and ir.DataType.from_numpy(t.numpy) == value.dtype]
    return found[0] if found else None


class GraphView:
    """Answers about one graph that does not change meanwhile."""

    def __init__(self, model: ir.Model) -> None:
        self.model = model
        self.nodes = tuple(model.graph)
        self.position = {node: index for index, node in enumerate(self.nodes)}
        self._params: dict[ir.Node, QuantParams | str] = {}

    @cached_property
    def outputs(self) -> frozenset[str]:
        """Names of the graph's outputs."""
        return frozenset(name_of(value) for value in self.model.graph.outputs)

    @cached_property
    def _readers(self) -> dict[str, list[ir.Node]]:
        readers: dict[str, list[ir.Node]] = {}
        for node in self.nodes:
            for value in dict.fromkeys(self.reads(node)):
                readers.setdefault(name_of(value), []).append(node)
        return readers

    def readers(self, value: ir.Value) -> list[ir.Node]:
        """Nodes of the main graph that read the value, themselves or in a subgraph of theirs."""
        return self._readers.get(name_of(value), [])

    def reads(self, node: ir.Node) -> list[ir.Value]:
        """Values that the node reads: its inputs and what its subgraphs take from the main graph."""
        return [value for value in node.inputs if value is not None and value.name] + list(self._captured(node))

    def _captured(self, node: ir.Node) -> Iterator[ir.Value]:
        for attribute in node.attributes.values():
            if attribute.type in _GRAPHS:
                graphs = [attribute.as_graph()] if attribute.type is ir.AttributeType.GRAPH else attribute.as_graphs()
                for graph in graphs:
                    yield from self._outer_values(graph)

    def _outer_values(self, graph: ir.Graph) -> Iterator[ir.Value]:
        read = [value for node in graph.all_nodes() for value in node.inputs if value is not None]
        for value in (*read, *graph.outputs):
            producer = value.producer()
            if producer in self.position or self._is_main_leaf(value):
                yield value

    def _is_main_leaf(self, value: ir.Value) -> bool:
        graph = self.model.graph
        return value in graph.inputs or graph.initializers.get(str(value.name)) is value

    def constant(self, value: ir.Value | None) -> Array | None:
        """The values of an initializer or of its QuantizeLinear, else None."""
        if value is None:
            return None
        if value.is_initializer() and value.const_value is not None:
            return np.asarray(value.const_value.numpy())
        producer = value.producer()
        if producer is None or not is_quantize(producer):
            return None
        source, params = self.constant(producer.inputs[0]), self.params(producer)
        if source is None or source.dtype != np.float32 or isinstance(params, str):
            return None
        return numerics.quantize(source, params)

    def real_constant(self, value: ir.Value) -> Array | None:
        """The real values of an initializer or of a DequantizeLinear of a constant, else None."""
        producer = value.producer()
        if producer is None or not is_dequantize(producer):
            return self.constant(value)
        params, integers = self.params(producer), self.constant(producer.inputs[0])
        return None if isinstance(params, str) or integers is None else numerics.dequantize(integers, params)

    def params(self, node: ir.Node) -> QuantParams | str:
        """Scale and zero point of a Q or DQ, or why they are none that units can carry."""
        if node not in self._params:
            self._params[node] = self._read_params(node)
        return self._params[node]

    def _read_params(self, node: ir.Node) -> QuantParams | str:
        integer = node.outputs[0] if is_quantize(node) else node.inputs[0]
        dtype = qtype_of(integer) if integer is not None else None
        if dtype is None or not dtype.is_integer:
            return f"{node.op_type} {node.name!r} has an element type without an integer form"
        scale = self.constant(node.inputs[1])
        zero_point = self.constant(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] is not None else None
        if scale is None or (zero_point is None and len(node.inputs) > 2 and node.inputs[2] is not None):
            return f"{node.op_type} {node.name!r} has a scale or zero point that is computed"
        if scale.dtype != np.float32:
            return f"{node.op_type} {node.name!r} has a scale of type {scale.dtype}; expected float32"
        if "block_size" in node.attributes and node.attributes["block_size"].as_int():
            return f"{node.op_type} {node.name!r} has one scale per block"
        zeros = np.zeros(scale.shape, np.int64) if zero_point is None else zero_point
        return self._checked_params(node, dtype, scale, zeros)

    def _checked_params(self, node: ir.Node, dtype: QType, scale: Array, zero_point: Array) -> QuantParams | str:
        try:
            if scale.size == 1:
                return QuantParams.per_tensor(dtype, float(scale.reshape(())), int(zero_point.reshape(())))
            shape = self.shape(node.inputs[0])
            axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 1
            axis += len(shape) if axis < 0 else 0
            if scale.ndim != 1 or not axis < len(shape) or shape[axis] != scale.size:
                return f"{node.op_type} {node.name!r} has scales that fit no axis of its tensor"
            return QuantParams.per_channel(dtype, scale, zero_point, axis)
        except (QuantizationError, ValueError) as error:
            problem = error.problem if isinstance(error, QuantizationError) else str(error)
            return f"{node.op_type} {node.name!r} has invalid parameters: {problem}"

    @staticmethod
    def shape(value: ir.Value | None) -> tuple[int, ...]:
        """The static shape of a value."""
        assert value is not None and value.shape is not None
        return tuple(int(size) for size in value.shape.numpy())

    def tensor(self, value: ir.Value, params: QuantParams | None = None) -> Tensor | None:
        """The value as a unit's tensor, None where units have no such element type."""
        dtype = qtype_of(value)
        return None if dtype is None else Tensor(name_of(value), self.shape(value), dtype, params)
