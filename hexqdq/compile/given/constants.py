"""Constants inside a given function: their values, and weights moved into arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
from mlir.ir import (
    BlockArgument,
    DenseElementsAttr,
    FunctionType,
    Location,
    OpView,
    RankedTensorType,
    TypeAttr,
    Value,
)

from hexqdq.errors import UnsupportedError
from hexqdq.ops.unit import Array

TYPES = {"i8": np.int8, "i16": np.int16, "i32": np.int32}
DATA_OPERANDS = {
    "tosa.conv2d": (1, 2),
    "tosa.depthwise_conv2d": (1, 2),
    "tosa.transpose_conv2d": (1, 2),
    "tosa.matmul": (0, 1),
}
"""Operands that are read as data: a constant there becomes an argument, as weights are."""


def values_of(source: str, place: str, value: Value) -> Array:
    """The values of a constant operand; raises UnsupportedError where it is computed."""
    owner = None if isinstance(value, BlockArgument) else value.owner
    if owner is None or owner.name != "tosa.const":
        problem = f"{place} reads {value.get_name()}, which is computed; expected a tosa.const"
        raise UnsupportedError(source, problem, "make it a constant of the text")
    return dense_values(source, owner)


def dense_values(source: str, op: Any) -> Array:
    """The values of a tosa.const, in its shape."""
    kind = RankedTensorType(op.results[0].type)
    element = str(kind.element_type)
    attribute = op.attributes["values"]
    if element not in TYPES or not isinstance(attribute, DenseElementsAttr):
        found = f"tosa.const {op.results[0].get_name()} holds {element} as {str(attribute)[:40]}"
        raise UnsupportedError(
            source, f"{found}; expected dense values of {', '.join(TYPES)}", "write it as dense<...>"
        )
    values = np.array(DenseElementsAttr(attribute), TYPES[element])
    return np.broadcast_to(values, tuple(kind.shape)) if values.size == 1 else values.reshape(tuple(kind.shape))


def weights_to_arguments(source: str, function: OpView) -> tuple[tuple[str, Array], ...]:
    """Moves constants that are read as data into arguments behind the others; their names and values."""
    block = function.regions[0].blocks[0]
    moved: list[tuple[str, Array]] = []
    for op in list(block.operations):
        if op.operation.name == "tosa.const" and is_data(op.operation.results[0]):
            moved.append((f"constant{len(moved)}", np.ascontiguousarray(dense_values(source, op.operation))))
            argument = block.add_argument(op.operation.results[0].type, Location.unknown())
            op.operation.results[0].replace_all_uses_with(argument)
            op.operation.erase()
    if moved:
        results = FunctionType(TypeAttr(function.attributes["function_type"]).value).results
        inputs = [argument.type for argument in block.arguments]
        function.attributes["function_type"] = TypeAttr.get(FunctionType.get(inputs, results))
    return tuple(moved)


def is_data(value: Value) -> bool:
    """Whether every reader takes the value as data."""
    uses = list(value.uses)
    return bool(uses) and all(use.operand_number in DATA_OPERANDS.get(use.owner.name, ()) for use in uses)
