"""Brings the constants of Gemm into the form that units have: alpha and beta 1, blocks along the first axis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from hexqdq.import_.product import ImportedModel
from hexqdq.quantize.planning.graph import constant, input_at
from hexqdq.quantize.recipe import Recipe

Array = NDArray[Any]

FACTORS = (("alpha", 1), ("beta", 2))
"""Attributes that multiply a constant, and its position."""


def laid_out(imported: ImportedModel, recipe: Recipe) -> ImportedModel:
    """The model with alpha and beta of Gemm multiplied into constants, and transB 0 where the recipe has blocks."""
    turns = recipe.weight_block > 0
    if not any(_is_scaled(node) or (turns and _is_turned(node)) for node in imported.model.graph):
        return imported
    model = imported.model.clone()
    made: dict[tuple[ir.Value, str], ir.Value] = {}
    for node in list(model.graph):
        for name, index in FACTORS:
            factor = _factor(node, name)
            if factor != 1 and constant(input_at(node, index)) is not None:
                _replace(node, index, f"times_{factor:g}", _times(factor), made)
                del node.attributes[name]
        if turns and _is_turned(node):
            _replace(node, 1, "transposed", _transposed, made)
            del node.attributes["transB"]
    for source in dict.fromkeys(source for source, _ in made):
        if not source.uses() and not source.is_graph_output():
            del model.graph.initializers[str(source.name)]
    return replace(imported, model=model)


def _is_gemm(node: ir.Node) -> bool:
    return (node.domain, node.op_type) == ("", "Gemm")


def _factor(node: ir.Node, name: str) -> float:
    return node.attributes[name].as_float() if _is_gemm(node) and name in node.attributes else 1.0


def _is_scaled(node: ir.Node) -> bool:
    return any(_factor(node, name) != 1 and constant(input_at(node, index)) is not None for name, index in FACTORS)


def _is_turned(node: ir.Node) -> bool:
    transposes = _is_gemm(node) and "transB" in node.attributes and node.attributes["transB"].as_int() == 1
    return transposes and constant(input_at(node, 1)) is not None


def _times(factor: float) -> Callable[[Array], Array]:
    return lambda values: np.asarray(values * np.float32(factor), values.dtype)


def _transposed(values: Array) -> Array:
    return np.ascontiguousarray(values.T)


def _replace(
    node: ir.Node, index: int, what: str, change: Callable[[Array], Array], made: dict[tuple[ir.Value, str], ir.Value]
) -> None:
    """A constant input changed, once for all that read it so."""
    source = node.inputs[index]
    values, graph = constant(source), node.graph
    assert source is not None and values is not None and isinstance(graph, ir.Graph)
    if (source, what) not in made:
        made[source, what] = _initializer(graph, f"{source.name}_{what}", change(values))
    node.replace_input_with(index, made[source, what])


def _initializer(graph: ir.Graph, base: str, values: Array) -> ir.Value:
    name, number = base, 2
    while name in graph.initializers:
        name, number = f"{base}_{number}", number + 1
    tensor = ir.tensor(values, name=name)
    value = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(values.shape), const_value=tensor)
    graph.register_initializer(value)
    return value
