"""Computes what depends on constants alone: shape arithmetic, ranges, masks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from hexqdq.errors import ModelError

MAX_ELEMENTS = 1 << 22
"""A folded result may have this many elements, or as many as the constants it is computed from."""

_KEPT = frozenset(
    {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "Constant"}
    | {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli"}
)
"""Q and DQ of constants stay to the bit; random ops are not constant."""
_GRAPHS = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)


def fold_constants(model: ir.Model) -> int:
    """Replaces nodes whose inputs are constant by initializers, and Shape and Size of static values."""
    folded = 0
    for node in list(model.graph):
        results = _static_shape(node) if node.op_type in ("Shape", "Size") else None
        if results is None and _is_foldable(node):
            results = _evaluate(node, model.graph.opset_imports)
        if results is not None and sum(result.size for result in results) <= _size_limit(node):
            _replace(model.graph, node, results)
            folded += 1
    return folded


def _is_foldable(node: ir.Node) -> bool:
    if node.domain != "" or node.op_type in _KEPT:
        return False
    if any(attribute.type in _GRAPHS for attribute in node.attributes.values()):
        return False
    if not all(value is None or (value.const_value is not None and value.is_initializer()) for value in node.inputs):
        return False
    if any(value is not None and value.dtype == ir.DataType.STRING for value in (*node.inputs, *node.outputs)):
        return False  # texts stay with the runtime that reads them
    shapes = [value.shape for value in node.outputs if value.shape is not None and value.shape.is_static()]
    return sum(math.prod(shape.numpy()) for shape in shapes) <= _size_limit(node)


def _size_limit(node: ir.Node) -> int:
    constants = (value.const_value for value in node.inputs if value is not None)
    return max(MAX_ELEMENTS, sum(tensor.size for tensor in constants if tensor is not None))


def _static_shape(node: ir.Node) -> list[NDArray[Any]] | None:
    data = node.inputs[0]
    if node.domain != "" or data is None or data.shape is None or not data.shape.is_static():
        return None
    dims = data.shape.numpy()
    if node.op_type == "Size":
        return [np.array(np.prod(dims, dtype=np.int64))]
    start = node.attributes["start"].as_int() if "start" in node.attributes else 0
    end = node.attributes["end"].as_int() if "end" in node.attributes else len(dims)
    return [np.array(dims[start:end], np.int64)]


def _evaluate(node: ir.Node, opsets: dict[str, int]) -> list[NDArray[Any]] | None:
    """The node's outputs by ONNX's reference, None where that does not know the op."""
    tensors = {str(v.name): v.const_value for v in node.inputs if v is not None and v.const_value is not None}
    proto = ir.serde.serialize_node(node)
    names = [output.name for output in node.outputs if output.name]
    graph = onnx.helper.make_graph(
        [proto],
        "fold",
        [onnx.helper.make_tensor_value_info(name, int(tensor.dtype), None) for name, tensor in tensors.items()],
        [onnx.ValueInfoProto(name=name) for name in names],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opsets[""])])
    try:
        results = ReferenceEvaluator(model).run(names, {name: tensor.numpy() for name, tensor in tensors.items()})
    except (NotImplementedError, TypeError):
        return None
    except Exception as error:
        raise ModelError(
            f"node {node.name!r} ({node.op_type})", f"fails on its constant inputs: {error}", "check the model"
        ) from error
    if not all(isinstance(result, np.ndarray | np.generic) for result in results):
        return None
    return [np.asarray(result) for result in results]


def _replace(graph: ir.Graph, node: ir.Node, results: list[NDArray[Any]]) -> None:
    named = [output for output in node.outputs if output.name]
    for output, result in zip(named, results, strict=True):
        name = output.name
        tensor = ir.tensor(result, name=name)
        shape = ir.Shape(result.shape)
        value = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=shape, const_value=tensor)
        output.name = f"{name}_before_folding"
        ir.convenience.replace_all_uses_with(output, value, replace_graph_outputs=output.is_graph_output())
        graph.register_initializer(value)
    graph.remove(node, safe=True)
