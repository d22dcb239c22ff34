"""Writes a plan into a graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import onnx_ir as ir

from hexqdq.ops.traits import Trait
from hexqdq.qtypes import QuantParams
from hexqdq.quantize.draft import Draft
from hexqdq.quantize.planning.given import is_dequantize, is_restored_constant, params_of, restored
from hexqdq.quantize.planning.graph import constant, input_at, results, spec_of
from hexqdq.quantize.planning.plan import Plan
from hexqdq.quantize.planning.select import Selection
from hexqdq.quantize.writing.cells import Placed, has_trait, quantize_normalization, quantize_recurrence
from hexqdq.quantize.writing.constants import operand_params, shown
from hexqdq.quantize.writing.contractions import has_constant_weights, quantize_contraction
from hexqdq.quantize.writing.insert import QdqWriter, Reader
from hexqdq.quantize.writing.weights import quantize_bias, quantize_constant


class GraphWriter:
    """The plan written into the graph: constants first, while their consumers still read them."""

    def __init__(self, writer: QdqWriter, selection: Selection, made: Plan, draft: Draft) -> None:
        self.writer, self.selection, self.plan, self.draft = writer, selection, made, draft
        self.encodings = draft.encodings(made)
        self.ends, self.movements = set(selection.results()), set(made.movements)

    def __call__(self, model: ir.Model) -> int:
        if not self.draft.is_narrow(self.plan):
            self.writer.admit_all_types(model)
        for node in (*self.selection.ends, *self.selection.indices):
            if node not in self.plan.complete:
                self._constants(node)
        for node in self.plan.movements:
            if node not in self.plan.complete:
                self._moved_constants(node)
        for name, value in _values(model.graph).items():
            if name in self.plan.values:
                self._pair(value)
        return len(self.writer.made)

    def _constants(self, node: ir.Node) -> None:
        dtype = self.encodings.type_of(node) or self.draft.recipe.activations
        for index in self.plan.reads[node]:
            values = constant(input_at(node, index))
            if values is not None:
                values = shown(node, index, values, self.encodings)
                params = operand_params(node, values, dtype)
                self.writer.constant(node, index, quantize_constant(values, params), f"{node.name}_input{index}")
        if has_constant_weights(node) and 1 not in self.plan.reads[node]:
            self._contraction(node)
        elif has_trait(node, Trait.CONTRACTION):
            self._bias_of_given_weights(node)
        for position, what, made in self._cell(node):
            self.writer.constant(node, position, made, f"{node.name}_{what}")

    def _moved_constants(self, node: ir.Node) -> None:
        """Constants that a movement puts among its data get the data's parameters."""
        spec = spec_of(node)
        assert spec is not None
        params = self.encodings.of(results(node)[0])
        for index in (*self.plan.reads[node], *spec.value_inputs):
            values = constant(input_at(node, index))
            if values is not None:
                self.writer.constant(node, index, quantize_constant(values, params), f"{node.name}_input{index}")

    def _contraction(self, node: ir.Node) -> None:
        made = quantize_contraction(
            node, self.selection, self.draft, self._input_scale(node), self.encodings.type_of(node)
        )
        self.writer.constant(node, 1, made.weights, f"{node.name}_weight")
        if made.bias is not None:
            self.writer.constant(made.reader, made.index, made.bias, f"{node.name}_bias")

    def _bias_of_given_weights(self, node: ir.Node) -> None:
        """A float bias beside weights that came quantized."""
        weights, bias = input_at(node, 1), constant(input_at(node, 2))
        producer = weights.producer() if weights is not None else None
        if producer is None or bias is None or bias.ndim != 1 or not is_restored_constant(weights):
            return
        params = params_of(producer)
        if params is not None:
            made = quantize_bias(bias, self._input_scale(node), params)
            self.writer.constant(node, 2, made, f"{node.name}_bias")

    def _cell(self, node: ir.Node) -> Iterator[Placed]:
        recipe = self.draft.recipe_of(str(node.name))
        if has_trait(node, Trait.NORMALIZATION):
            return quantize_normalization(node, recipe, self._input_scale(node))
        if has_trait(node, Trait.RECURRENT):
            state_scale = self.encodings.of(results(node)[0]).scale[0]
            return quantize_recurrence(node, recipe, self._input_scale(node), state_scale)
        return iter(())

    def _input_scale(self, node: ir.Node) -> float:
        return self.encodings.read(node, node.inputs[0]).scale[0]

    def _pair(self, value: ir.Value) -> None:
        """Quantized results are read by everyone as such; inputs and float results only where asked for."""
        name = str(value.name)
        group = self.plan.values[name]
        ours = value in self.ends or value.producer() in self.movements
        readers = self._readers(value)
        converting = defaultdict[QuantParams, list[Reader]](list)
        for node, index in readers:
            converting[self.encodings.read(node, value)].append((node, index))
        own = self.encodings.of(value)
        if name in self.plan.given:
            restored = self._given(value, own, group, readers)
        else:
            restored = self.writer.pair(value, own, group, None if ours else readers)
        for params, others in converting.items():
            if params != own:
                copy = f"{group}_{params.dtype.label}"
                self.writer.pair(restored, params, copy, others, f"{name}_{params.dtype.label}")

    def _given(self, value: ir.Value, own: QuantParams, group: str, readers: list[Reader]) -> ir.Value:
        """What readers of a value that came with a Q or a DQ read: what is restored of it."""
        if is_dequantize(value.producer()):
            return value
        held = restored(value)
        if held is None:
            return self.writer.pair(value, own, group, readers) if readers else value
        for node, index in readers:
            node.replace_input_with(index, held)
        return held

    def _readers(self, value: ir.Value) -> list[Reader]:
        uses = [(use.node, use.idx) for use in value.uses()]
        return [(node, index) for node, index in uses if index in self.plan.reads.get(node, ())]


def _values(graph: ir.Graph) -> dict[str, ir.Value]:
    computed = (value for node in graph for value in node.outputs)
    return {str(value.name): value for value in (*graph.inputs, *computed)}
