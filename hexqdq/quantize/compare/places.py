"""Which values of a float model a quantized one has too, and how it encodes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from hexqdq.errors import ModelError
from hexqdq.import_.product import ImportedModel
from hexqdq.qtypes import QType, QuantParams
from hexqdq.quantize.planning.graph import constant, is_float, is_movement
from hexqdq.quantize.scaled import marked


@dataclass(frozen=True)
class Place:
    """A value of the float model, what reads like it in the quantized one, and its encodings there.

    ``params`` are those that it is stored in, None where it has none of one scale; ``types`` adds those
    of converted copies. ``inputs`` are the computed values that its maker reads. What ``is_masked`` is
    seen by softmaxes only, which tell nothing of what lies far below the largest value of a row.
    """

    name: str
    op_type: str
    axis: int
    quantized: str
    params: QuantParams | None
    types: tuple[str, ...]
    inputs: tuple[str, ...]
    is_output: bool
    is_masked: bool


def places(exact: ImportedModel, quantized: ImportedModel) -> list[Place]:
    """The float values that both models have by name, in the order of computation, but for those that are scaled.

    Raises ModelError where no quantized one is among them, or a shape differs.
    """
    scaled = marked(quantized.model)
    values = {str(v.name): v for v in _values(quantized.model.graph) if v.name not in scaled}
    found = []
    for value in _values(exact.model.graph):
        twin = values.get(str(value.name))
        if twin is not None and is_float(value) and is_float(twin):
            found.append(_place(value, twin, quantized.source))
    if not any(place.params for place in found):
        hint = "compare a float model with the QDQ model that was made from it"
        raise ModelError(quantized.source, f"has no quantized tensor in common with {exact.source}", hint)
    return found


def _place(value: ir.Value, twin: ir.Value, source: str) -> Place:
    read, params, types = _encoded(twin)
    shape, producer = value.shape, value.producer()
    assert shape is not None
    if shape != read.shape:
        raise ModelError(source, f"computes {value.name!r} as {read.shape}; expected {shape}")
    inputs = () if producer is None else producer.inputs
    return Place(
        name=str(value.name),
        op_type=producer.op_type if producer is not None else "input",
        axis=1 if len(shape) > 3 else max(len(shape) - 1, 0),
        quantized=str(read.name),
        params=params,
        types=types,
        inputs=tuple(dict.fromkeys(str(v.name) for v in inputs if v is not None and constant(v) is None)),
        is_output=value.is_graph_output(),
        is_masked=_is_masked(value),
    )


def _is_masked(value: ir.Value) -> bool:
    """Whether what reads the value ends in softmaxes, by way of sums, choices and movements."""
    waiting, seen = [value], set[ir.Value]()
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        if one.is_graph_output() or not one.uses():
            return False
        for use in one.uses():
            if use.node.op_type in ("Add", "Where") or is_movement(use.node):
                waiting += use.node.outputs
            elif use.node.op_type != "Softmax":
                return False
    return True


def _values(graph: ir.Graph) -> Iterator[ir.Value]:
    yield from graph.inputs
    for node in graph:
        yield from node.outputs


def _encoded(value: ir.Value) -> tuple[ir.Value, QuantParams | None, tuple[str, ...]]:
    """What follows a value's Q and DQ, its parameters and all types; the value itself where it has none.

    A graph output is what its DQ gives.
    """
    producer = value.producer()
    if producer is not None and producer.op_type == "DequantizeLinear":
        return value, _params(producer), (_type(producer), *_copies(value))
    for restored in _restored(value):
        return restored.outputs[0], _params(restored), (_type(restored), *_copies(restored.outputs[0]))
    return value, None, ()


def _copies(value: ir.Value) -> Iterator[str]:
    """The types that a dequantized value is converted to."""
    yield from dict.fromkeys(_type(restored) for restored in _restored(value))


def _restored(value: ir.Value) -> Iterator[ir.Node]:
    """The DQ nodes behind the Q nodes that read the value."""
    for use in value.uses():
        if use.node.op_type == "QuantizeLinear" and use.idx == 0:
            readers = [following.node for following in use.node.outputs[0].uses()]
            yield from (node for node in readers if node.op_type == "DequantizeLinear")


def _type(node: ir.Node) -> str:
    """The short name of the integers that a DQ reads."""
    integers = node.inputs[0]
    dtype = integers.dtype if integers is not None else None
    return QType.from_numpy(dtype.numpy()).label if dtype is not None else "unknown"


def _params(node: ir.Node) -> QuantParams | None:
    """The parameters of a DQ of one scale."""
    scale = constant(node.inputs[1])
    zero_point = constant(node.inputs[2]) if len(node.inputs) > 2 else np.zeros(1, np.uint8)
    if scale is None or zero_point is None or scale.size != 1:
        return None
    return QuantParams.per_tensor(QType.from_numpy(zero_point.dtype), float(scale.item()), int(zero_point.item()))
