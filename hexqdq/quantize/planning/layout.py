"""Lays out constant weights as blocks need them: [k, channels], the axis that is summed over first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from hexqdq.import_.product import ImportedModel
from hexqdq.quantize.planning.graph import constant, input_at
from hexqdq.quantize.recipe import Recipe


def laid_out(imported: ImportedModel, recipe: Recipe) -> ImportedModel:
    """The model with constant weights of Gemm turned so that transB is 0, where the recipe has blocks."""
    if not recipe.weight_block or not any(_is_turned(node) for node in imported.model.graph):
        return imported
    model = imported.model.clone()
    turned: dict[ir.Value, ir.Value] = {}
    for node in model.graph:
        weights = input_at(node, 1)
        if _is_turned(node) and weights is not None:
            if weights not in turned:
                turned[weights] = _transposed(model.graph, weights)
            node.replace_input_with(1, turned[weights])
            del node.attributes["transB"]
    for weights in turned:
        if not weights.uses() and not weights.is_graph_output():
            del model.graph.initializers[str(weights.name)]
    return replace(imported, model=model)


def _is_turned(node: ir.Node) -> bool:
    is_gemm = (node.domain, node.op_type) == ("", "Gemm")
    transposes = is_gemm and "transB" in node.attributes and node.attributes["transB"].as_int() == 1
    return transposes and constant(input_at(node, 1)) is not None


def _transposed(graph: ir.Graph, weights: ir.Value) -> ir.Value:
    values = constant(weights)
    assert values is not None
    name, number = f"{weights.name}_transposed", 2
    while name in graph.initializers:
        name, number = f"{weights.name}_transposed_{number}", number + 1
    tensor = ir.tensor(np.ascontiguousarray(values.T), name=name)
    made = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(values.T.shape), const_value=tensor)
    graph.register_initializer(made)
    return made
