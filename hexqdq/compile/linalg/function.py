"""The whole function: arguments, every operation by its form, results."""

from __future__ import annotations

from collections.abc import Callable

from mlir.ir import Module, OpView, Value

from hexqdq.compile.linalg.forms import movement
from hexqdq.compile.linalg.forms.argmax import argmax
from hexqdq.compile.linalg.forms.contract import product_sum
from hexqdq.compile.linalg.forms.structured import generic
from hexqdq.compile.linalg.nest import Access, Buffer, Form, Function, Place, dense_strides
from hexqdq.compile.linalg.read import Reader, copy, is_tensor, tensor_type
from hexqdq.compile.product import TosaSegment
from hexqdq.errors import CompileError
from hexqdq.qtypes import QType

OperationForm = Callable[[Reader, OpView], None]


def any_generic(reader: Reader, op: OpView) -> None:
    """linalg.generic: with two results it must be an argmax."""
    (argmax if len(op.results) == 2 else generic)(reader, op)


FORMS: dict[str, OperationForm] = {
    "tensor.empty": movement.empty,
    "tensor.expand_shape": movement.view,
    "tensor.collapse_shape": movement.view,
    "tensor.reshape": movement.view,
    "tensor.cast": movement.view,
    "tensor.pad": movement.pad,
    "tensor.extract_slice": movement.extract_slice,
    "tensor.insert_slice": movement.insert_slice,
    "tensor.concat": movement.concat,
    "linalg.fill": movement.filled,
    "linalg.transpose": movement.transpose,
    "linalg.broadcast": movement.broadcast,
    "linalg.generic": any_generic,
    "linalg.pooling_nhwc_max": generic,
    "linalg.pooling_nhwc_sum": generic,
    "linalg.conv_2d_nhwc_fhwc": product_sum,
    "linalg.conv_2d_nhwc_fhwc_q": product_sum,
    "linalg.conv_2d_nhwc_hwcf": product_sum,
    "linalg.conv_2d_nhwc_hwcf_q": product_sum,
    "linalg.depthwise_conv_2d_nhwc_hwcm": product_sum,
    "linalg.depthwise_conv_2d_nhwc_hwcm_q": product_sum,
    "linalg.matmul": product_sum,
    "linalg.reduce": generic,
    "linalg.batch_matmul": product_sum,
    "linalg.quantized_matmul": product_sum,
    "linalg.quantized_batch_matmul": product_sum,
}
"""What every operation of the lowered function becomes."""

EDGE_ELEMENT = {QType.S32: "i32", QType.S64: "i64"}
"""Elements of an edge of integers; results of fewer bits are widened where they are written."""
EDGE_FORM = {QType.U8: Form.FLIPPED, QType.U16: Form.FLIPPED}
"""An unsigned edge holds ``x ^ sign bit`` of the signed value that bodies speak."""


def read_function(module: Module, segment: TosaSegment) -> Function:
    """The module's function as nodes; its arguments are the segment's inputs, then its constants."""
    functions = [op for op in module.body.operations if op.operation.name == "func.func"]
    if len(functions) != 1:
        raise CompileError(f"segment {segment.name}", f"has {len(functions)} functions; expected one")
    block = functions[0].regions[0].blocks[0]
    reader = Reader()
    inputs = add_arguments(reader, list(block.arguments), segment)
    results: list[Value] = []
    for op in block.operations:
        name = op.operation.name
        if name == "arith.constant":
            if is_tensor(op.results[0]):
                reader.constant(op.results[0], op)
        elif name in ("func.return", "return"):
            results = list(op.operands)
        elif name in FORMS:
            FORMS[name](reader, op)
        else:
            raise CompileError(f"segment {segment.name}", f"operation {name} has no loop form")
    outputs = tuple(add_result(reader, value, index, segment) for index, value in enumerate(results))
    return Function(segment.name, reader.buffers, tuple(reader.nodes), inputs, outputs, reader.values)


def add_arguments(reader: Reader, arguments: list[Value], segment: TosaSegment) -> tuple[str, ...]:
    """Buffers of inputs and constants; returns the inputs' names."""
    expected = len(segment.inputs) + len(segment.constants)
    if len(arguments) != expected:
        raise CompileError(f"segment {segment.name}", f"has {len(arguments)} arguments; expected {expected}")
    names = []
    for index, argument in enumerate(arguments):
        shape, element = tensor_type(argument)
        if index < len(segment.inputs):
            form = EDGE_FORM.get(segment.inputs[index].dtype, Form.RAW)
            buffer = Buffer(f"input{index}", shape, element, form, Place.INPUT)
            names.append(buffer.name)
        else:
            name, values = segment.constants[index - len(segment.inputs)]
            buffer = Buffer(f"argument{index}", shape, element, Form.RAW, Place.CONSTANT)
            reader.values[buffer.name] = values.tobytes()
            if len(reader.values[buffer.name]) != buffer.nbytes:
                raise CompileError(f"constant {name}", f"has {values.nbytes} bytes; expected {buffer.nbytes}")
        reader.names[argument] = reader.add(buffer)
    return tuple(names)


def add_result(reader: Reader, value: Value, index: int, segment: TosaSegment) -> str:
    """The buffer of a result: that of its node where it can be written in place, else a copy of it."""
    name = reader.name(value)
    source = reader.buffers[name]
    form = EDGE_FORM.get(segment.outputs[index].dtype, Form.RAW)
    element = EDGE_ELEMENT.get(segment.outputs[index].dtype, source.element)
    if source.place is Place.ARENA and element == source.element:
        reader.buffers[name] = Buffer(name, source.shape, source.element, form, Place.OUTPUT)
        return name
    output = reader.add(Buffer(f"output{index}", source.shape, element, form, Place.OUTPUT))
    everything = dense_strides(source.shape)
    read, write = Access(name, everything), Access(output, everything)
    reader.node("copy", output, copy(source.shape, source.element, read, write, element))
    return output
