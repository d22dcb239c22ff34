"""Static shapes of what a Loop makes, which ONNX inference leaves open: a state could change its shape.

Where the body gives every state the shape that it was given, each has it after any number of turns.
"""

from __future__ import annotations

import onnx
import onnx_ir as ir

Dims = tuple[int, ...]


def infer_loops(model: ir.Model) -> int:
    """Gives outputs of Loops their shapes where they are certain; returns how many learned one."""
    return sum(_infer(node, model) for node in model.graph if node.op_type == "Loop" and node.domain == "")


def _infer(node: ir.Node, model: ir.Model) -> int:
    waiting = [value for value in node.outputs if value.name and (value.shape is None or not value.shape.is_static())]
    given = [_dims(value) for value in node.inputs[2:]]
    if not waiting or None in given:
        return 0
    made = _after_one_turn(node, [dims for dims in given if dims is not None], model)
    if made is None or made[: len(given)] != given:
        return 0
    turns = _turns(node)
    shapes = [*given, *(None if dims is None or turns is None else (turns, *dims) for dims in made[len(given) :])]
    learned = 0
    for value, shape in zip(node.outputs, shapes, strict=True):
        if value in waiting and shape is not None:
            value.shape = ir.Shape(shape)
            learned += 1
    return learned


def _after_one_turn(node: ir.Node, given: list[Dims], model: ir.Model) -> list[Dims | None] | None:
    """The shapes of the body's results but the condition where states have the given shapes."""
    body = node.attributes["body"].as_graph()
    proto = ir.serde.serialize_graph(body)
    for info, dims in zip(proto.input, [(), (), *given], strict=True):
        element = info.type.tensor_type.elem_type
        info.CopyFrom(onnx.helper.make_tensor_value_info(info.name, element, dims))
    for info in proto.output:
        info.type.tensor_type.ClearField("shape")
    for value in _captured(body, model.graph):
        if value.is_initializer() and value.const_value is not None and value.const_value.nbytes <= 1024:
            proto.initializer.append(ir.serde.serialize_tensor(value.const_value))
            proto.initializer[-1].name = str(value.name)
        elif value.dtype is not None:
            proto.input.append(onnx.helper.make_tensor_value_info(str(value.name), int(value.dtype), _dims(value)))
    opsets = [onnx.helper.make_opsetid(domain, version) for domain, version in model.graph.opset_imports.items()]
    alone = onnx.helper.make_model(proto, opset_imports=opsets, ir_version=model.ir_version)
    try:
        inferred = onnx.shape_inference.infer_shapes(alone, data_prop=True)
    except onnx.shape_inference.InferenceError:
        return None
    return [_dims_of(info.type.tensor_type) for info in inferred.graph.output[1:]]


def _captured(body: ir.Graph, outer: ir.Graph) -> list[ir.Value]:
    """Values of the outer graph that the body or a graph inside it reads."""
    read = (value for node in ir.traversal.RecursiveGraphIterator(body) for value in node.inputs if value is not None)
    return [value for value in dict.fromkeys((*read, *body.outputs)) if value.graph is outer]


def _turns(node: ir.Node) -> int | None:
    """How often the body runs, None where that is known at run time only."""
    count, condition = node.inputs[:2]
    goes_on = node.attributes["body"].as_graph().outputs[0]
    maker = goes_on.producer()
    while maker is not None and maker.op_type == "Identity" and maker.inputs[0] is not None:
        goes_on = maker.inputs[0]
        maker = goes_on.producer()
    passed = goes_on is node.attributes["body"].as_graph().inputs[1]
    if count is None or count.const_value is None or not (passed or _is_true(goes_on)):
        return None
    return max(int(count.const_value.numpy().reshape(())), 0) if condition is None or _is_true(condition) else None


def _is_true(value: ir.Value) -> bool:
    maker = value.producer()
    if maker is not None and maker.op_type == "Constant" and "value" in maker.attributes:
        return bool(maker.attributes["value"].as_tensor().numpy().reshape(()))
    return value.const_value is not None and bool(value.const_value.numpy().reshape(()))


def _dims(value: ir.Value | None) -> Dims | None:
    if value is None or value.shape is None or not value.shape.is_static():
        return None
    return tuple(value.shape.numpy())


def _dims_of(found: onnx.TypeProto.Tensor) -> Dims | None:
    if not found.HasField("shape") or not all(dim.HasField("dim_value") for dim in found.shape.dim):
        return None
    return tuple(dim.dim_value for dim in found.shape.dim)
