"""Where the model is cut: which values cross each segment's border, and in which form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from hexqdq.ops.unit import Tensor, UnitGraph
from hexqdq.partition.cluster import Batch, Dependencies, dependencies, schedule, segments
from hexqdq.partition.match import Match, input_names
from hexqdq.partition.product import Edge, NpuPart
from hexqdq.partition.support import Support, is_lone_quantize
from hexqdq.partition.view import GraphView, is_dequantize, is_quantize, name_of
from hexqdq.qtypes import QuantParams


class Cut:
    """The graph as items that run on one side each, and Q/DQ nodes that belong to whoever needs them.

    Items are accepted units and CPU nodes in graph order. A *border* node is a DQ, or a Q of a
    float value that units read: a segment absorbs it at its edge, a CPU part takes a copy of it.
    """

    def __init__(self, view: GraphView, support: Support) -> None:
        self.view, self.support = view, support
        self.match_of = {node: found for found in support.accepted for node in found.nodes}
        self.makers = {str(name): value for name, value in _values(view).items()}
        self._read_by_units = {name for found in support.accepted for name in input_names(found)}
        self._read_by_units |= {name for found in support.accepted for name in found.unit.constants}
        self.items: list[Match | ir.Node] = self._items()
        self.item_of = {node: i for i, item in enumerate(self.items) for node in _nodes(item)}
        self.dependencies = self._dependencies()
        self.groups = segments(self.dependencies)
        self.batches = schedule(self.dependencies, self.groups)

    def is_border(self, node: ir.Node) -> bool:
        """Whether the node is a Q or DQ that no side owns."""
        if node in self.match_of:
            return False
        if is_dequantize(node):
            return not isinstance(self.view.params(node), str)
        if not is_quantize(node) or name_of(node.outputs[0]) not in self._read_by_units:
            return False
        return self.view.constant(node.outputs[0]) is not None or is_lone_quantize(self.view, node)

    def _items(self) -> list[Match | ir.Node]:
        items: list[Match | ir.Node] = []
        for node in self.view.nodes:
            found = self.match_of.get(node)
            if found is not None and found.place is node:
                items.append(found)
            elif found is None and not self.is_border(node):
                items.append(node)
        return items

    def _dependencies(self) -> Dependencies:
        sources = [frozenset(self._sources(item)) for item in self.items]
        return dependencies(len(self.items), sources.__getitem__, lambda i: isinstance(self.items[i], Match))

    def _sources(self, item: Match | ir.Node) -> set[int]:
        if isinstance(item, Match):
            values = [self.makers[name] for name in input_names(item)]
        else:
            values = self.view.reads(item)
        return {source for value in values if (source := self._source(value)) is not None}

    def _source(self, value: ir.Value) -> int | None:
        """The item that a value comes from, through border nodes; None for inputs and constants."""
        producer = value.producer()
        while producer is not None and self.is_border(producer):
            value = self.makers[name_of(producer.inputs[0])]
            producer = value.producer()
        return None if producer is None else self.item_of[producer]

    def units(self, number: int) -> list[Match]:
        """The units of a segment in graph order."""
        return [item for i in self.groups[number] if isinstance(item := self.items[i], Match)]

    def host_batches(self) -> list[Batch]:
        return [batch for batch in self.batches if batch.segment is None]


def _values(view: GraphView) -> dict[str, ir.Value]:
    graph = view.model.graph
    computed = (value for node in view.nodes for value in node.outputs if value.name)
    return {name_of(value): value for value in (*graph.inputs, *graph.initializers.values(), *computed)}


def _nodes(item: Match | ir.Node) -> Sequence[ir.Node]:
    return item.nodes if isinstance(item, Match) else (item,)


@dataclass(frozen=True, eq=False)
class Demand:
    """Who outside its segment reads an integer value: as integers, or as floats through DQ nodes."""

    as_integers: bool
    dequantizers: tuple[ir.Node, ...]


def npu_part(cut: Cut, number: int, name: str) -> NpuPart:
    """Segment ``number`` with its edges; a Q or DQ at a float edge is absorbed."""
    matches = cut.units(number)
    inputs = _input_edges(cut, matches)
    made = [tensor for found in matches for tensor in found.unit.outputs]
    outputs = [edge for tensor in made for edge in _output_edges(cut, tensor, number)]
    graph = UnitGraph(
        name=name,
        inputs=tuple(edge.tensor for edge in inputs),
        outputs=tuple(edge.tensor for edge in outputs),
        units=tuple(found.unit for found in matches),
    )
    return NpuPart(graph, tuple(inputs), tuple(outputs))


def _input_edges(cut: Cut, matches: Sequence[Match]) -> list[Edge]:
    made = {tensor.name for found in matches for tensor in found.unit.outputs}
    edges: dict[str, Edge] = {}
    for found in matches:
        for tensor in found.unit.variable_inputs():
            if tensor.name not in made and tensor.name not in edges:
                edges[tensor.name] = _input_edge(cut, tensor)
    return list(edges.values())


def _input_edge(cut: Cut, tensor: Tensor) -> Edge:
    producer = cut.makers[tensor.name].producer()
    if producer is None or not (is_quantize(producer) and cut.is_border(producer)):
        return Edge(tensor.name, tensor)
    params = cut.view.params(producer)
    assert isinstance(params, QuantParams)
    return Edge(name_of(producer.inputs[0]), Tensor(tensor.name, tensor.shape, tensor.dtype, params), is_float=True)


def _output_edges(cut: Cut, tensor: Tensor, number: int) -> list[Edge]:
    demand = _demand(cut, tensor, number)
    if not demand.as_integers and not demand.dequantizers:
        return []
    if demand.as_integers or len(demand.dequantizers) > 1:
        return [Edge(tensor.name, tensor)]
    (dequantizer,) = demand.dequantizers
    params = cut.view.params(dequantizer)
    assert isinstance(params, QuantParams)
    seen = Tensor(tensor.name, tensor.shape, tensor.dtype, params)
    return [Edge(name_of(dequantizer.outputs[0]), seen, is_float=True)]


def _demand(cut: Cut, tensor: Tensor, number: int) -> Demand:
    value = cut.makers[tensor.name]
    members = {node for match in cut.units(number) for node in match.nodes}
    as_integers = name_of(value) in cut.view.outputs
    dequantizers = []
    for reader in cut.view.readers(value):
        if not is_dequantize(reader) or not cut.is_border(reader):
            as_integers |= reader not in members
            continue
        floats = reader.outputs[0]
        users = cut.view.readers(floats)
        if name_of(floats) in cut.view.outputs or any(user not in cut.match_of for user in users):
            dequantizers.append(reader)
        as_integers |= any(user in cut.match_of and user not in members for user in users)
    return Demand(as_integers, tuple(dequantizers))
