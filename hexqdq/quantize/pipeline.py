"""ImportedModel and calibration samples -> QdqModel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import onnx_ir as ir

from hexqdq.import_.product import ImportedModel, model_digest
from hexqdq.ops.spec import Trait
from hexqdq.passes import Pass, run_passes
from hexqdq.qtypes import QuantParams
from hexqdq.quantize.calibrate import Progress, Sample, calibrate
from hexqdq.quantize.graph import QDQ_OPS, bias_vector, constant, input_at, output_channels, spec_of, weight_axis
from hexqdq.quantize.insert import QdqWriter
from hexqdq.quantize.plan import Plan, Range, group_params, plan, span_params
from hexqdq.quantize.product import QdqModel
from hexqdq.quantize.recipe import Recipe
from hexqdq.quantize.select import Selection, decisions, select
from hexqdq.quantize.verify import qdq_problems
from hexqdq.quantize.weights import quantize_bias, quantize_constant, quantize_weights


def is_quantized(model: ir.Model) -> bool:
    """Whether the model holds QuantizeLinear or DequantizeLinear."""
    return any(node.op_type in QDQ_OPS for node in model.graph)


def already_quantized(imported: ImportedModel) -> QdqModel:
    """The model as it came: its Q and DQ are kept to the bit."""
    return QdqModel(imported.model, imported.digest, imported.origin)


def quantize(
    imported: ImportedModel,
    calibration: Iterable[Sample],
    recipe: Recipe | None = None,
    progress: Progress | None = None,
) -> QdqModel:
    """The model as a QDQ graph of the recipe; one that holds Q/DQ already passes unchanged.

    Raises CalibrationError where the samples do not fit the model or set no range.
    """
    if is_quantized(imported.model):
        return already_quantized(imported)
    recipe = recipe or Recipe()
    selection = select(imported.model.graph, recipe)
    made = plan(selection)
    ranges = calibrate(imported.model, tuple(made.values), calibration, recipe.method, progress, recipe.knobs())
    return assemble(imported, recipe, ranges)


def assemble(imported: ImportedModel, recipe: Recipe, ranges: Mapping[str, Range]) -> QdqModel:
    """The QDQ graph that known ranges give."""
    model = imported.model.clone()
    selection = select(model.graph, recipe)
    made = plan(selection)
    writer = QdqWriter(model.graph)
    floats = decisions(selection, made.still)
    write = _Write(writer, selection, made, recipe, ranges)
    run_passes(model, (Pass("insert", "the plan is complete", write),), verify=qdq_problems)
    origin = dict(imported.origin)
    origin |= {name: imported.origin.get(served or "", ()) for name, served in writer.made.items()}
    return QdqModel(model, model_digest(model), origin, dict(ranges), floats)


def values_to_calibrate(imported: ImportedModel, recipe: Recipe) -> tuple[str, ...]:
    """The values whose ranges ``assemble`` needs."""
    return tuple(plan(select(imported.model.graph, recipe)).values)


class _Write:
    """The plan written into the graph: constants first, while their consumers still read them."""

    def __init__(
        self, writer: QdqWriter, selection: Selection, made: Plan, recipe: Recipe, ranges: Mapping[str, Range]
    ) -> None:
        self.writer, self.selection, self.plan, self.recipe = writer, selection, made, recipe
        self.params = group_params(made, ranges, recipe.activations)
        self.ends, self.movements = set(selection.ends.values()), set(made.movements)

    def __call__(self, model: ir.Model) -> int:
        for node in self.selection.ends:
            self._constants(node)
        for node in self.plan.movements:
            self._moved_constants(node)
        for name, value in _values(model.graph).items():
            if name in self.plan.values:
                self._pair(value)
        return len(self.writer.made)

    def _constants(self, node: ir.Node) -> None:
        for index in self.plan.reads[node]:
            values = constant(input_at(node, index))
            if values is not None:
                params = span_params(float(values.min()), float(values.max()), self.recipe.activations)
                self.writer.constant(node, index, quantize_constant(values, params), f"{node.name}_input{index}")
        weights = constant(input_at(node, 1))
        if weights is not None and 1 not in self.plan.reads[node] and _is_contraction(node):
            self._weights(node, self._input_scale(node))

    def _moved_constants(self, node: ir.Node) -> None:
        """Constants that a movement puts among its data get the data's parameters."""
        spec = spec_of(node)
        assert spec is not None
        params = self._params_of(node.outputs[0])
        for index in (*self.plan.reads[node], *spec.value_inputs):
            values = constant(input_at(node, index))
            if values is not None:
                self.writer.constant(node, index, quantize_constant(values, params), f"{node.name}_input{index}")

    def _weights(self, node: ir.Node, input_scale: float) -> None:
        weights = constant(input_at(node, 1))
        assert weights is not None
        axis = weight_axis(node) if self.recipe.per_channel else None
        reader, index = self.selection.bias_adds.get(node, (node, 2))
        values = constant(input_at(reader, index))
        bias = bias_vector(values, output_channels(node)) if values is not None else None
        quantized = quantize_weights(weights, axis, self.recipe.weights, input_scale, bias)
        self.writer.constant(node, 1, quantized, f"{node.name}_weight")
        if bias is not None:
            self.writer.constant(reader, index, quantize_bias(bias, input_scale, quantized.params), f"{node.name}_bias")

    def _input_scale(self, node: ir.Node) -> float:
        data = node.inputs[0]
        assert data is not None
        params = self._params_of(data)
        return params.scale[0]

    def _params_of(self, value: ir.Value) -> QuantParams:
        return self.params[self.plan.values[str(value.name)]]

    def _pair(self, value: ir.Value) -> None:
        """Quantized results are read by everyone as such; inputs and float results only where asked for."""
        group = self.plan.values[str(value.name)]
        producer = value.producer()
        ours = value in self.ends or producer in self.movements
        readers = None if ours else self._readers(value)
        self.writer.pair(value, self.params[group], group, readers)

    def _readers(self, value: ir.Value) -> list[tuple[ir.Node, int]]:
        uses = [(use.node, use.idx) for use in value.uses()]
        return [(node, index) for node, index in uses if index in self.plan.reads.get(node, ())]


def _values(graph: ir.Graph) -> dict[str, ir.Value]:
    computed = (value for node in graph for value in node.outputs)
    return {str(value.name): value for value in (*graph.inputs, *computed)}


def _is_contraction(node: ir.Node) -> bool:
    spec = spec_of(node)
    return spec is not None and spec.trait is Trait.CONTRACTION
