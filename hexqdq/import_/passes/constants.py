"""Brings every constant into the main graph's initializers."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import common

from hexqdq.errors import ModelError


def lift_constants(model: ir.Model) -> int:
    """Constant nodes become initializers; initializers that are also inputs stay initializers only."""
    listed = _drop_initializer_inputs(model.graph)
    lifted = 0
    for node in list(model.graph):
        if node.op_type == "Constant" and node.domain == "":
            _lift(model.graph, node)
            lifted += 1
    named = _name_types(model.graph)
    return listed + lifted + named


def _drop_initializer_inputs(graph: ir.Graph) -> int:
    kept = [value for value in graph.inputs if value.name not in graph.initializers]
    dropped = len(graph.inputs) - len(kept)
    if dropped:
        graph.inputs.clear()
        graph.inputs.extend(kept)
    return dropped


def _lift(graph: ir.Graph, node: ir.Node) -> None:
    (output,) = node.outputs
    tensor = _constant_tensor(node)
    shape = ir.Shape(tensor.shape.numpy())
    value = ir.Value(name=output.name, type=ir.TensorType(tensor.dtype), shape=shape, const_value=tensor)
    is_output = output.is_graph_output()
    output.name = f"{output.name}_constant_node"
    ir.convenience.replace_all_uses_with(output, value, replace_graph_outputs=is_output)
    graph.remove(node, safe=True)
    graph.register_initializer(value)


def _constant_tensor(node: ir.Node) -> ir.TensorProtocol:
    (attribute,) = node.attributes.values()
    match attribute.name:
        case "value":
            return attribute.as_tensor()
        case "value_int" | "value_ints":
            return ir.tensor(np.array(attribute.value, np.int64))
        case "value_float" | "value_floats":
            return ir.tensor(np.array(attribute.value, np.float32))
        case other:
            raise ModelError(f"node {node.name!r}", f"is a Constant given as {other}", "export it as a dense tensor")


def _name_types(graph: ir.Graph) -> int:
    """Gives each initializer the type and shape of its tensor."""
    changed = 0
    for value in graph.initializers.values():
        tensor = value.const_value
        if tensor is not None and (value.dtype != tensor.dtype or value.shape != tensor.shape):
            value.type, value.shape = ir.TensorType(tensor.dtype), ir.Shape(tensor.shape.numpy())
            changed += 1
    return changed


def remove_dead(model: ir.Model) -> int:
    """Removes nodes, initializers and opsets that no graph output needs."""
    before = _size(model)
    common.RemoveUnusedNodesPass()(model)
    common.RemoveUnusedOpsetsPass()(model)
    return before - _size(model)


def _size(model: ir.Model) -> int:
    return model.graph.num_nodes() + len(model.graph.initializers) + len(model.opset_imports)
