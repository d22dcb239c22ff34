"""What a given function may hold; each check refuses by the operation's name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mlir.ir import OpView, RankedTensorType, Type, Value

from hexqdq.compile.given.constants import values_of
from hexqdq.errors import ModelError, UnsupportedError

# fmt: off
OPS = frozenset((
    "abs", "add", "argmax", "arithmetic_right_shift", "avg_pool2d", "bitwise_and", "bitwise_not", "bitwise_or",
    "bitwise_xor", "cast", "clamp", "clz", "concat", "const", "const_shape", "conv2d", "depthwise_conv2d", "equal",
    "gather", "greater", "greater_equal", "intdiv", "logical_and", "logical_left_shift", "logical_not",
    "logical_or", "logical_right_shift", "logical_xor", "matmul", "max_pool2d", "maximum", "minimum", "mul",
    "negate", "pad", "reduce_max", "reduce_min", "reduce_sum", "rescale", "reshape", "reverse", "select", "slice",
    "sub", "table", "tile", "transpose", "transpose_conv2d",
))
# fmt: on
"""The operations of TOSA that lower, without the dialect's prefix."""
ELEMENTS = ("i1", "i8", "i16", "i32", "i48", "i64")
SHIFTS = range(2, 63)
"""The shifts of RESCALE (TOSA 1.0)."""
STAGES = "of what --dump wrote, give back 00_import.onnx, 01_quantize.onnx or a segment's 00.tosa.mlir"


def check_operations(source: str, operations: Iterable[OpView]) -> None:
    """Every operation is TOSA's, on integers of static shape, and inside the domain of RESCALE."""
    for number, op in enumerate(operations):
        name = op.operation.name
        if name == "func.return":
            continue
        dialect, _, short = name.partition(".")
        place = f"operation {number}, {name},"
        if dialect != "tosa":
            raise UnsupportedError(source, f"{place} is not TOSA; expected operations of TOSA", STAGES)
        check_types(source, place, [*op.operation.operands, *op.operation.results])
        if short not in OPS:
            raise UnsupportedError(source, f"{place} is not among those that lower: {', '.join(sorted(OPS))}", REWRITE)
        if short == "rescale":
            check_rescale(source, place, op)


REWRITE = "rewrite the function without it"


def check_types(source: str, place: str, values: Iterable[Value]) -> None:
    """Tensors of integers and of static shape, or shapes."""
    for value in values:
        if str(value.type).startswith("!tosa.shape"):
            continue
        element = static_element(value.type)
        if element not in ELEMENTS:
            found = f"{place} has {value.type}; expected tensors of static shape of {', '.join(ELEMENTS)}"
            raise UnsupportedError(source, found, "quantize to integers and give every dimension")


def static_element(kind: Type) -> str | None:
    """The element type of a ranked tensor of static shape, else None."""
    if not isinstance(kind, RankedTensorType):
        return None
    tensor = RankedTensorType(kind)
    return str(tensor.element_type) if tensor.has_static_shape else None


def check_rescale(source: str, place: str, op: OpView) -> None:
    """Constant multipliers and shifts inside RESCALE's domain, with its single rounding."""
    attributes: Any = op.operation.attributes
    rounding = str(attributes["rounding_mode"])
    if "SINGLE_ROUND" not in rounding:
        raise UnsupportedError(source, f"{place} rounds by {rounding}; expected SINGLE_ROUND", REWRITE)
    multipliers, shifts = (values_of(source, place, op.operation.operands[index]) for index in (1, 2))
    if min(multipliers) < 0:
        problem = f"{place} has the multiplier {min(multipliers)}; expected 0 or more"
        raise ModelError(source, problem, "give RESCALE multipliers that are not negative")
    outside = [int(shift) for shift in shifts if shift not in SHIFTS]
    if outside:
        problem = f"{place} has the shift {outside[0]}; expected {SHIFTS.start}..{SHIFTS.stop - 1}"
        raise ModelError(source, problem, "scale by multiplier * 2**-shift inside RESCALE's domain")
