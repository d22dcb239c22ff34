"""Writes a MatMul and the addition of its bias as one Gemm, the form that every back end reads as one unit.

Between a MatMul and an Add stands no Q, since the bias belongs to the accumulators; node groups of
other NPU back ends end at a Q, and know a bias of Conv and Gemm only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from hexqdq.quantize.planning.graph import (
    bias_add,
    bias_vector,
    constant,
    input_at,
    only_consumer,
    output_channels,
)
from hexqdq.quantize.planning.select import is_foldable
from hexqdq.quantize.recipe import Recipe
from hexqdq.quantize.writing.insert import names_of


class ProductWriter:
    """Edits one graph; ``holds`` maps each new value to the old one whose elements it holds.

    ``made`` maps each new node, and each Gemm, to the nodes that it stands for. A Gemm has the name of
    its MatMul, so that what is known of its weights by name stays true.
    """

    def __init__(self, graph: ir.Graph, recipe: Recipe) -> None:
        self.graph, self.recipe = graph, recipe
        self.holds: dict[str, str] = {}
        self.made: dict[str, tuple[str, ...]] = {}
        self._gone: set[str] = set()
        self._rows: dict[ir.Value, ir.Value] = {}
        self._names = set().union(*names_of(graph))

    def write(self) -> int:
        """Joins every MatMul with its bias unless the recipe keeps one of both float; returns how many."""
        kept = self.recipe.keep_float
        found = [(node, bias_add(node)) for node in self.graph]
        pairs = [(node, *add) for node, add in found if add is not None]
        chosen = [pair for pair in pairs if pair[0].name not in kept and pair[1].name not in kept]
        for product, add, index in chosen:
            self._join(product, add, index)
        return len(chosen)

    def origin(self, sources: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        """The source's nodes by node, with those of the new ones."""
        told = {name: nodes for name, nodes in sources.items() if name not in self._gone}
        for name, stands_for in self.made.items():
            told[name] = tuple(dict.fromkeys(node for old in stands_for for node in sources.get(old, ())))
        return told

    def _join(self, product: ir.Node, add: ir.Node, index: int) -> None:
        data, result = product.inputs[0], add.outputs[0]
        assert data is not None and data.shape is not None and result.shape is not None
        inputs = [self._as_rows(data, product), product.inputs[1], self._bias(product, add, index)]
        gemm = ir.node("Gemm", inputs, name=str(product.name))
        self.graph.insert_after(add, gemm)
        self.made[str(gemm.name)] = (str(gemm.name), str(add.name))
        self._gone.add(str(add.name))
        end = gemm.outputs[0]
        end.type, end.shape = result.type, result.shape.copy()
        ir.convenience.replace_all_uses_with(result, end, replace_graph_outputs=True)
        end.name, result.name = result.name, self._unique(f"{result.name}_replaced")
        self.graph.remove([add, product], safe=True)
        if inputs[0] is not data:
            self._unfold(gemm)

    def _bias(self, product: ir.Node, add: ir.Node, index: int) -> ir.Value:
        values = constant(input_at(add, index))
        assert values is not None
        vector = bias_vector(values, output_channels(product))
        assert vector is not None
        return self._constant(f"{product.name}_bias", np.ascontiguousarray(vector))

    def _as_rows(self, data: ir.Value, reader: ir.Node) -> ir.Value:
        """The data as a matrix; every product that reads them shares it."""
        assert data.shape is not None
        shape = data.shape.numpy()
        if len(shape) == 2:
            return data
        if data not in self._rows:
            matrix = (math.prod(shape[:-1]), shape[-1])
            node = self._reshape(data, matrix, self._unique(f"{data.name}_rows"))
            self.graph.insert_before(reader, node)
            self.made[str(node.name)] = (str(reader.name),)
            self.holds[str(node.outputs[0].name)] = str(data.name)
            self._rows[data] = node.outputs[0]
        return self._rows[data]

    def _unfold(self, gemm: ir.Node) -> None:
        """Gives the result its shape back, behind the activations that fold into the product."""
        chain = [gemm.outputs[0]]
        while (following := only_consumer(chain[-1])) is not None and is_foldable(following, chain[-1], self.recipe):
            chain.append(following.outputs[0])
        end, uses = chain[-1], [(use.node, use.idx) for use in chain[-1].uses()]
        assert end.shape is not None and gemm.inputs[0] is not None and gemm.inputs[0].shape is not None
        shape, name = end.shape.numpy(), str(end.name)
        rows = int(gemm.inputs[0].shape.numpy()[0])
        for value in chain:
            value.shape = ir.Shape((rows, shape[-1]))
        end.name = self._unique(f"{name}_rows")
        node = self._reshape(end, shape, name)
        self.graph.insert_after(_producer(end), node)
        for reader, index in uses:
            reader.replace_input_with(index, node.outputs[0])
        outputs = self.graph.outputs
        for place, output in enumerate(outputs):
            if output is end:
                outputs[place] = node.outputs[0]
        self.holds[str(end.name)] = name
        self.made[str(node.name)] = self.made[str(gemm.name)]

    def _reshape(self, data: ir.Value, shape: tuple[int, ...], name: str) -> ir.Node:
        sizes = self._constant(f"{name}_shape", np.array(shape, np.int64))
        node = ir.node("Reshape", [data, sizes], name=self._unique(f"Reshape_{name}"))
        node.outputs[0].name = name
        node.outputs[0].type, node.outputs[0].shape = data.type, ir.Shape(shape)
        return node

    def _constant(self, name: str, values: NDArray[Any]) -> ir.Value:
        tensor = ir.tensor(values, name=self._unique(name))
        value = ir.Value(name=tensor.name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(values.shape))
        value.const_value = tensor
        self.graph.register_initializer(value)
        return value

    def _unique(self, base: str) -> str:
        name, number = base, 2
        while name in self._names:
            name, number = f"{base}_{number}", number + 1
        self._names.add(name)
        return name


def _producer(value: ir.Value) -> ir.Node:
    producer = value.producer()
    assert producer is not None
    return producer
