"""ONNX protos of models without their weights, for what reads structure only: a proto ends at 2 GB."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import onnx
import onnx_ir as ir


def light_proto(model: ir.Model, most_bytes: int) -> onnx.ModelProto:
    """The model with each larger initializer declared as an input; no weight is copied."""
    with _stand_ins(model, most_bytes):
        proto = ir.to_proto(model)
    graph = proto.graph
    kept = []
    for tensor in graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
        else:
            kept.append(tensor)
    del graph.initializer[:]
    graph.initializer.extend(kept)
    return proto


def with_weights(light: ir.Model, source: ir.Model, most_bytes: int) -> ir.Model:
    """A model made of ``light_proto``'s, with the source's initializers again."""
    graph = light.graph
    weights = {str(v.name): v.const_value for v in source.graph.initializers.values() if _is_large(v, most_bytes)}
    for value in list(graph.inputs):
        if value.name in weights:
            graph.inputs.remove(value)
            value.const_value = weights[str(value.name)]
            graph.register_initializer(value)
    return light


def _is_large(value: ir.Value, most_bytes: int) -> bool:
    tensor = value.const_value
    return tensor is not None and tensor.dtype != ir.DataType.STRING and tensor.nbytes > most_bytes


@contextmanager
def _stand_ins(model: ir.Model, most_bytes: int) -> Iterator[None]:
    """While it lasts, larger initializers are references to a file that nobody reads."""
    replaced = {v: v.const_value for v in model.graph.initializers.values() if _is_large(v, most_bytes)}
    try:
        for value, tensor in replaced.items():
            assert tensor is not None
            shape = ir.Shape(tensor.shape.numpy())
            value.const_value = ir.ExternalTensor(
                "weights", 0, tensor.nbytes, tensor.dtype, shape=shape, name=str(value.name)
            )
        yield
    finally:
        for value, tensor in replaced.items():
            value.const_value = tensor
