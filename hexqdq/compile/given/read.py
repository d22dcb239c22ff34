"""A text with one function of TOSA integer operations as a segment."""

from __future__ import annotations

from collections.abc import Sequence

from mlir.ir import (
    ArrayAttr,
    Context,
    DictAttr,
    FunctionType,
    Location,
    MLIRError,
    Module,
    OpView,
    StringAttr,
    Type,
    TypeAttr,
)

from hexqdq.compile.given.check import STAGES, check_operations, static_element
from hexqdq.compile.given.constants import weights_to_arguments
from hexqdq.compile.product import TosaSegment
from hexqdq.compile.tosa.builder import symbol
from hexqdq.errors import ModelError, UnsupportedError
from hexqdq.ops.unit import Tensor
from hexqdq.qtypes import QType

NAME = "tosa.tensor_name"
SILENT = ("tosa.const", "tosa.const_shape", "func.return")
"""Operations that compute nothing."""
EDGES = {"i8": QType.S8, "i16": QType.S16, "i32": QType.S32}
"""Element types that cross a function's border."""


def read_tosa(text: str, source: str) -> tuple[TosaSegment, tuple[str, ...]]:
    """The function as a segment, and the names of the operations that compute, in order.

    Inputs and outputs are named by the attribute ``tosa.tensor_name``, else ``arg0``, ``result0``
    and so on. Constants that operations read as data become the segment's constants. Raises
    ModelError or UnsupportedError naming what the text has that compile does not take.
    """
    with Context() as context, Location.unknown():
        context.allow_unregistered_dialects = True
        try:
            module = Module.parse(text)
        except MLIRError as error:
            problem = f"does not parse as MLIR: {str(error).strip()}"
            raise ModelError(source, problem, "give the text of one TOSA function") from error
        function = only_function(source, module)
        operations = list(function.regions[0].blocks[0].operations)
        check_operations(source, operations)
        names = tuple(op.operation.name for op in operations if op.operation.name not in SILENT)
        inputs, outputs = edges(source, function)
        for key in ("arg_attrs", "res_attrs"):
            if key in function.attributes:
                del function.attributes[key]
        name = symbol(StringAttr(function.attributes["sym_name"]).value)
        function.attributes["sym_name"] = StringAttr.get(name)
        constants = weights_to_arguments(source, function)
        return TosaSegment(name, str(module), inputs, outputs, constants), names


def only_function(source: str, module: Module) -> OpView:
    """The module's one function, which has a body of one block."""
    operations = list(module.body.operations)
    for op in operations:
        if op.operation.name != "func.func":
            problem = f"has {op.operation.name} beside functions; expected one func.func"
            raise UnsupportedError(source, problem, "keep the function alone")
    if len(operations) != 1:
        names = ", ".join(StringAttr(op.operation.attributes["sym_name"]).value for op in operations) or "none"
        problem = f"has {len(operations)} functions: {names}; expected one"
        raise UnsupportedError(source, problem, "keep one function in the file")
    (function,) = operations
    if len(list(function.regions[0].blocks)) != 1:
        problem = "its function has no body of one block; expected one that ends in return"
        raise UnsupportedError(source, problem, "give the function's operations")
    return function


def edges(source: str, function: OpView) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """The function's inputs and outputs under names that are unique."""
    kind = FunctionType(TypeAttr(function.attributes["function_type"]).value)
    inputs = tensors(source, kind.inputs, edge_names(function, "arg_attrs", "arg", len(kind.inputs)))
    outputs = tensors(source, kind.results, edge_names(function, "res_attrs", "result", len(kind.results)))
    if not outputs:
        raise UnsupportedError(source, "its function returns nothing; expected at least one tensor", STAGES)
    given = [tensor.name for tensor in (*inputs, *outputs)]
    twice = sorted({name for name in given if given.count(name) > 1})
    if twice:
        problem = f"{', '.join(twice)} names several inputs or outputs; expected unique names"
        raise ModelError(source, problem, f"give each its own {NAME}")
    return inputs, outputs


def edge_names(function: OpView, key: str, default: str, count: int) -> list[str]:
    attributes = list(ArrayAttr(function.attributes[key])) if key in function.attributes else [None] * count
    found = []
    for index, attribute in enumerate(attributes):
        named = attribute is not None and NAME in DictAttr(attribute)
        found.append(StringAttr(DictAttr(attribute)[NAME]).value if named else f"{default}{index}")
    return found


def tensors(source: str, types: Sequence[Type], given: Sequence[str]) -> tuple[Tensor, ...]:
    made = []
    for kind, name in zip(types, given, strict=True):
        element = static_element(kind)
        if element not in EDGES:
            problem = f"{name} is {kind}; expected a tensor of static shape of {', '.join(EDGES)}"
            raise UnsupportedError(source, problem, "quantize to integers and give every dimension")
        made.append(Tensor(name, tuple(kind.shape), EDGES[element]))
    return tuple(made)
