"""The float model with a switch at every reading: any set of them runs in 8 bits, in one session."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from hexqdq import numerics
from hexqdq.ops.traits import Trait
from hexqdq.qtypes import QuantParams
from hexqdq.quantize.calibration.calibrate import Runner, Sample
from hexqdq.quantize.draft import Draft
from hexqdq.quantize.mixed.outputs import Outputs
from hexqdq.quantize.mixed.readings import Place, Wiring, wiring
from hexqdq.quantize.planning.graph import input_at
from hexqdq.quantize.planning.plan import plan
from hexqdq.quantize.planning.select import select
from hexqdq.quantize.writing.cells import has_trait, quantize_normalization, quantize_recurrence
from hexqdq.quantize.writing.contractions import has_constant_weights, quantize_contraction
from hexqdq.quantize.writing.weights import QuantizedConstant


class Switchboard:
    """Runs the samples with weights as the draft quantizes them and activations as the switches say.

    A reading that is on goes through its Q and DQ; one that is off stays float, which stands for 16 bits:
    their noise is some 48 dB below that of 8.
    """

    def __init__(self, draft: Draft) -> None:
        model = draft.imported.model.clone()
        names = [str(value.name) for value in model.graph.outputs]
        self.wiring = wiring(model.graph, draft)
        _Editor(model.graph).write(self.wiring, _weights(model.graph, draft))
        self._names = dict(zip((str(value.name) for value in model.graph.outputs), names, strict=True))
        self._runner = Runner(model, tuple(self._names))
        self._float = draft.imported.model
        self._samples: Sequence[Sample] = ()
        self.exact: list[Outputs] = []

    def take(self, samples: Sequence[Sample]) -> None:
        """Takes the samples to run; ``exact`` are the float model's outputs of them."""
        self._samples = samples
        self.exact = _run(Runner(self._float, tuple(self._names.values())), samples)

    def __call__(self, on: Iterable[int]) -> list[Outputs]:
        """The outputs of every sample with the readings ``on`` in 8 bits."""
        mask = np.zeros(len(self.wiring.readings), np.bool_)
        mask[list(on)] = True
        found = _run(self._runner, [{**sample, _SWITCHES: mask} for sample in self._samples])
        return [{self._names[name]: values for name, values in outputs.items()} for outputs in found]


_SWITCHES = "hexqdq_switches"


def _run(runner: Runner, samples: Sequence[Sample]) -> list[Outputs]:
    return [dict(runner(sample, index)) for index, sample in enumerate(samples)]


def _weights(graph: ir.Graph, draft: Draft) -> list[tuple[ir.Node, int, QuantizedConstant]]:
    """What every constant weight becomes; biases keep 32 bits and are left as they are."""
    selection = select(graph, draft.recipe)
    made = plan(selection)
    encodings = draft.encodings(made)
    found = []
    for node in selection.ends:
        data = input_at(node, 0)
        scale = encodings.read(node, data).scale[0] if data is not None and data.name in made.values else 1.0
        if has_constant_weights(node) and 1 not in made.reads[node]:
            found.append((node, 1, quantize_contraction(node, selection, draft, scale).weights))
        elif has_trait(node, Trait.NORMALIZATION):
            cells = quantize_normalization(node, draft.recipe_of(str(node.name)), scale)
            found += [(node, position, cell) for position, what, cell in cells if what != "bias"]
        elif has_trait(node, Trait.RECURRENT):
            cells = quantize_recurrence(node, draft.recipe_of(str(node.name)), scale, scale)
            found += [(node, position, cell) for position, what, cell in cells if what != "bias"]
    return found


class _Editor:
    """Writes the switches into a graph."""

    def __init__(self, graph: ir.Graph) -> None:
        self.graph = graph

    def write(self, wired: Wiring, weights: Iterable[tuple[ir.Node, int, QuantizedConstant]]) -> None:
        for number, (node, position, constant) in enumerate(weights):
            values = numerics.dequantize(constant.values, constant.params).astype(np.float32)
            node.replace_input_with(position, self._constant(f"hexqdq_weight_{number}", values))
        switches = self._switches(len(wired.readings)) if wired.readings else ()
        for number, place in enumerate(wired.places):
            self._switch(f"hexqdq_place_{number}", place, switches[place.reading])

    def _switches(self, count: int) -> Sequence[ir.Value]:
        """One [1] boolean per reading, parts of one input."""
        together = ir.Value(name=_SWITCHES, type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape((count,)))
        self.graph.inputs.append(together)
        sizes = self._constant(f"{_SWITCHES}_sizes", np.ones(count, np.int64))
        node = ir.node("Split", [together, sizes], {"axis": 0}, num_outputs=count, name=f"{_SWITCHES}_split")
        for number, output in enumerate(node.outputs):
            output.name = f"{_SWITCHES}_{number}"
            output.type, output.shape = ir.TensorType(ir.DataType.BOOL), ir.Shape((1,))
        self._insert_before_all(node)
        return node.outputs

    def _switch(self, name: str, place: Place, switch: ir.Value) -> None:
        value = place.value
        on, off = self._encoded(name, value, place.params), ir.node("Identity", [value], name=f"{name}_exact")
        branches = {
            "then_branch": self._branch(f"{name}_on", value, on),
            "else_branch": self._branch(f"{name}_off", value, [off]),
        }
        choice = ir.node("If", [switch], branches, name=name)
        (result,) = choice.outputs
        self._describe(result, f"{name}_read", value)
        producer = value.producer()
        if producer is None:
            self.graph.insert_after(switch.producer(), choice)  # type: ignore[arg-type]
        else:
            self.graph.insert_after(producer, choice)
        if place.users is None:
            outputs = self.graph.outputs
            for position, output in enumerate(outputs):
                if output is value:
                    outputs[position] = result
        for node, position in place.users or ():
            node.replace_input_with(position, result)

    def _encoded(self, name: str, value: ir.Value, params: QuantParams) -> list[ir.Node]:
        scale = self._constant(f"{name}_scale", params.scales().reshape(()))
        zero_point = self._constant(f"{name}_zero_point", params.zero_points().reshape(()))
        quantized = ir.node("QuantizeLinear", [value, scale, zero_point], name=f"{name}_quantize")
        quantized.outputs[0].name = f"{name}_quantized"
        restored = ir.node("DequantizeLinear", [quantized.outputs[0], scale, zero_point], name=f"{name}_dequantize")
        return [quantized, restored]

    def _branch(self, name: str, like: ir.Value, nodes: Sequence[ir.Node]) -> ir.Graph:
        result = nodes[-1].outputs[0]
        self._describe(result, f"{name}_result", like)
        return ir.Graph([], [result], nodes=nodes, name=name)

    def _describe(self, value: ir.Value, name: str, like: ir.Value) -> None:
        value.name, value.type = name, like.type
        value.shape = like.shape.copy() if like.shape is not None else None

    def _insert_before_all(self, node: ir.Node) -> None:
        self.graph.insert_before(self.graph[0], node)

    def _constant(self, name: str, values: NDArray[np.generic]) -> ir.Value:
        tensor = ir.tensor(values, name=name)
        value = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(values.shape), const_value=tensor)
        self.graph.register_initializer(value)
        return value
