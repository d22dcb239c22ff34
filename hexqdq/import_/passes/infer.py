"""Gives every value its type and shape."""

from __future__ import annotations

import onnx
import onnx_ir as ir

from hexqdq.errors import ModelError
from hexqdq.import_.light import light_proto
from hexqdq.import_.loops import infer_loops

_SMALL_BYTES = 1024
"""Inference reads the values of small constants only."""
_CONTRIB_QDQ = ("QuantizeLinear", "DequantizeLinear")


def infer_shapes(model: ir.Model) -> int:
    """Runs ONNX shape inference; returns how many values learned a type or a shape.

    Raises ModelError where inference finds a contradiction and leaves shapes unknown.
    """
    changes = 0
    while learned := _infer_once(model) + _infer_contrib(model.graph) + infer_loops(model):
        changes += learned
    return changes


def _infer_once(model: ir.Model) -> int:
    proto = light_proto(model, _SMALL_BYTES)
    try:
        inferred = onnx.shape_inference.infer_shapes(proto, check_type=True, strict_mode=True, data_prop=True)
    except Exception as error:
        inferred = _leniently(proto)
        learned = _merge(model, inferred)
        if any(value.shape is None or not value.shape.is_static() for node in model.graph for value in node.outputs):
            raise ModelError(
                "shape inference", " ".join(str(error).split()), "check the model and --input-shape"
            ) from error
        return learned
    return _merge(model, inferred)


def _leniently(proto: onnx.ModelProto) -> onnx.ModelProto:
    try:
        return onnx.shape_inference.infer_shapes(proto, data_prop=True)
    except Exception as error:
        problem = " ".join(str(error).split())
        raise ModelError("shape inference", problem, "check the model with onnx.checker") from error


def _merge(model: ir.Model, inferred: onnx.ModelProto) -> int:
    learned = 0
    known = {info.name: info.type.tensor_type for info in (*inferred.graph.value_info, *inferred.graph.output)}
    for node in model.graph:
        for value in node.outputs:
            found = known.get(value.name or "")
            if found is not None:
                learned += _take_type(value, found) + _take_shape(value, found)
    return learned


def _take_type(value: ir.Value, found: onnx.TypeProto.Tensor) -> int:
    if value.dtype is not None or not found.elem_type:
        return 0
    value.type = ir.TensorType(ir.DataType(found.elem_type))
    return 1


def _take_shape(value: ir.Value, found: onnx.TypeProto.Tensor) -> int:
    if not found.HasField("shape") or (value.shape is not None and value.shape.is_static()):
        return 0
    dims = tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in found.shape.dim)
    if value.shape is not None and _known(tuple(value.shape)) >= _known(dims):
        return 0
    value.shape = ir.Shape(dims)
    return 1


def _known(dims: tuple[object, ...]) -> int:
    return sum(isinstance(dim, int) for dim in dims)


def _infer_contrib(graph: ir.Graph) -> int:
    """Onnxruntime's own QuantizeLinear, DequantizeLinear and QuickGelu, which ONNX does not know."""
    learned = 0
    for node in graph:
        if node.domain != "com.microsoft" or node.op_type not in (*_CONTRIB_QDQ, "QuickGelu"):
            continue
        data, output = node.inputs[0], node.outputs[0]
        if data is not None and output.shape is None and data.shape is not None:
            output.shape = data.shape.copy()
            learned += 1
        dtype = _contrib_type(node) if node.op_type in _CONTRIB_QDQ else data.dtype if data is not None else None
        if output.dtype is None and dtype is not None:
            output.type = ir.TensorType(dtype)
            learned += 1
    return learned


def _contrib_type(node: ir.Node) -> ir.DataType:
    index = 1 if node.op_type == "DequantizeLinear" else 2
    source = node.inputs[index] if index < len(node.inputs) else None
    if source is None or source.dtype is None:
        return ir.DataType.UINT8
    return source.dtype
