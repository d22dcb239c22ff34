"""Convolutions and matrix products with constant weights as contractions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from mlir.ir import OpView, Value
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from hexqdq.compile.linalg.affine import access
from hexqdq.compile.linalg.forms.structured import Structured, generic, permuted, structured
from hexqdq.compile.linalg.nest import (
    Access,
    Body,
    Contraction,
    Instruction,
    Nest,
    Place,
    Stage,
    dense_strides,
)
from hexqdq.compile.linalg.read import Reader, copy_body, is_tensor, scalar_constant, tensor_type


@dataclass(frozen=True)
class Roles:
    """A product-sum's loops by what they index; unit loops belong to none."""

    pixels: tuple[int, ...]
    channels: tuple[int, ...]
    shared: tuple[int, ...]
    taps: tuple[int, ...]


def product_sum(reader: Reader, op: OpView) -> None:
    """A named convolution or matrix product; a plain nest where it has no faster form."""
    form = structured(op)
    part = contraction(reader, form)
    if part is None:
        generic(reader, op)
        return
    output = reader.arena(op.results[0])
    write = Access(output, dense_strides(part.result_extents))
    reader.node(op.operation.name.removeprefix("linalg."), output, replace(part, write=write))


def contraction(reader: Reader, form: Structured) -> Contraction | Nest | None:
    """The operation as a contraction, None where operands or loops do not fit one."""
    activations, weights = form.inputs[:2]
    if not (tensor_type(activations)[1] == tensor_type(weights)[1] == "i8"):
        return None
    if tensor_type(form.op.results[0])[1] != "i32" or reader.buffers[reader.name(weights)].place is not Place.CONSTANT:
        return None
    left, right = reader.read(activations, form.maps[0]), reader.read(weights, form.maps[1])
    roles = roles_of(form, left, right)
    start = form.op.operands[-1]
    if len(roles.channels) == 1 and not roles.shared:
        return ordinary(reader, form, roles, left, right, start)
    if len(roles.shared) == 1 and not roles.channels and zero_filled(reader, start):
        return depthwise(reader, form, roles, left, right)
    return None


def roles_of(form: Structured, left: Access, right: Access) -> Roles:
    """Which operand every loop of more than one iteration indexes."""
    loops = [loop for loop in range(len(form.extents)) if form.extents[loop] > 1]
    parallel = [loop for loop in loops if loop not in form.reductions]
    return Roles(
        tuple(loop for loop in parallel if not right.strides[loop]),
        tuple(loop for loop in parallel if right.strides[loop] and not left.strides[loop]),
        tuple(loop for loop in parallel if right.strides[loop] and left.strides[loop]),
        tuple(loop for loop in loops if loop in form.reductions),
    )


def zero_points(form: Structured) -> tuple[int, int]:
    """Zero points of activations and weights."""
    numbers = [scalar_constant(value) for value in form.inputs[2:] if not is_tensor(value)]
    return (numbers[0], numbers[1]) if numbers else (0, 0)


def ordinary(
    reader: Reader, form: Structured, roles: Roles, left: Access, right: Access, start: Value
) -> Contraction | None:
    if not in_output_order(form, (*roles.pixels, *roles.channels)):
        return None
    bias = bias_of(reader, start, form, roles.channels[0])
    if bias is None and not zero_filled(reader, start):
        return None
    zero_point, weight_zero_point = zero_points(form)
    channel = channel_tap(form, roles, left)
    taps = [tap for tap in roles.taps if tap != channel]
    depth = 1 if channel is None else form.extents[channel]
    last = (depth,), (1,), (0 if channel is None else right.strides[channel],)
    activation, weights = permuted(left, (*roles.pixels, *taps)), permuted(right, (*roles.channels, *taps))
    return Contraction(
        tuple(form.extents[loop] for loop in roles.pixels),
        (*(form.extents[loop] for loop in taps), *last[0]),
        form.extents[roles.channels[0]],
        depth,
        replace(activation, strides=(*activation.strides, *last[1])),
        replace(weights, strides=(*weights.strides, *last[2])),
        zero_point,
        weight_zero_point,
        bias,
        Access("", ()),
        Stage(copy_body("i32")),
    )


def channel_tap(form: Structured, roles: Roles, left: Access) -> int | None:
    """The reduction over input channels: it steps by one, everything else by whole rows of channels.

    None where there is a single channel.
    """
    for tap in roles.taps:
        others = [left.strides[loop] for loop in (*roles.pixels, *roles.taps) if loop != tap]
        if left.strides[tap] == 1 and all(stride % form.extents[tap] == 0 for stride in (*others, left.offset)):
            return tap
    return None


def depthwise(reader: Reader, form: Structured, roles: Roles, left: Access, right: Access) -> Nest | None:
    """A sum per channel over unsigned activation bytes; the zero point's share is where the sum starts.

    Products of u8 and s8 fit 16 bits, which vector units multiply at twice the rate of 32. Weights
    with a zero point are stored without it, as 16 bits.
    """
    channel = roles.shared[0]
    zero_point, weight_zero_point = zero_points(form)
    order = (*roles.pixels, channel)
    if not roles.taps or left.strides[channel] != 1 or not in_output_order(form, order):
        return None
    sizes = tuple(form.extents[loop] for loop in (channel, *roles.taps))
    centred = gathered(reader, permuted(right, (channel, *roles.taps)), sizes).astype(np.int64) - weight_zero_point
    total = -(zero_point + 128) * centred.reshape(sizes[0], -1).sum(axis=1)
    start = reader.held(total.astype(np.int32), "i32")
    none = (0,) * len(roles.pixels)
    weights, product = permuted(right, (*order, *roles.taps)), NARROW_PRODUCT
    if weight_zero_point:
        wide = reader.held(np.moveaxis(centred, 0, -1).astype(np.int16), "i16")
        weights = Access(wide, (*none, 1, *(stride * sizes[0] for stride in dense_strides(sizes[1:]))))
        product = WIDE_PRODUCT
    return Nest(
        tuple(form.extents[loop] for loop in (*order, *roles.taps)),
        len(order),
        Access("", ()),
        Stage(copy_body("i32")),
        Stage(copy_body("i32"), (Access(start, (*none, 1)),)),
        Stage(product, (permuted(left, (*order, *roles.taps)), weights)),
    )


NARROW_PRODUCT = Body(
    ("i32", "i8", "i8"),
    (
        Instruction("constant", (), "i8", -128),
        Instruction("arith.xori", (1, 3), "i8"),
        Instruction("arith.extui", (4,), "i16"),
        Instruction("arith.extsi", (2,), "i16"),
        Instruction("arith.muli", (5, 6), "i16"),
        Instruction("arith.extsi", (7,), "i32"),
        Instruction("arith.addi", (0, 8), "i32"),
    ),
    9,
)
"""acc + (a + 128) * w, products of 16 bits."""

WIDE_PRODUCT = Body(
    ("i32", "i8", "i16"),
    (
        Instruction("constant", (), "i8", -128),
        Instruction("arith.xori", (1, 3), "i8"),
        Instruction("arith.extui", (4,), "i32"),
        Instruction("arith.extsi", (2,), "i32"),
        Instruction("arith.muli", (5, 6), "i32"),
        Instruction("arith.addi", (0, 7), "i32"),
    ),
    8,
)
"""acc + (a + 128) * w, products of 32 bits."""


def gathered(reader: Reader, access: Access, sizes: tuple[int, ...]) -> NDArray[np.int8]:
    """The constant bytes that an access reads over loops of ``sizes``."""
    values = np.frombuffer(reader.values[access.buffer], np.int8)[access.offset :]
    return as_strided(values, sizes, access.strides, writeable=False)


def in_output_order(form: Structured, loops: tuple[int, ...]) -> bool:
    """Whether the result is dense over the loops in this order."""
    shape, _ = tensor_type(form.op.results[0])
    target = permuted(access("", shape, form.output_map), loops)
    return target.strides == dense_strides(tuple(form.extents[loop] for loop in loops)) and not target.offset


def zero_filled(reader: Reader, start: Value) -> bool:
    return start in reader.fills and reader.fills[start][1] == 0


def bias_of(reader: Reader, start: Value, form: Structured, channel: int) -> str | None:
    """The constant that the accumulator starts from, where it has one element per channel."""
    node = next((node for node in reader.nodes if node.output == reader.names.get(start)), None)
    if node is None or len(node.parts) != 1 or not isinstance(node.parts[0], Nest):
        return None
    finish = node.parts[0].finish
    if not finish.body.copies or len(finish.reads) != 1:
        return None
    (read,) = finish.reads
    buffer = reader.buffers[read.buffer]
    if buffer.place is not Place.CONSTANT or buffer.element != "i32" or read.offset:
        return None
    repeats = [stride for stride, extent in zip(read.strides, node.parts[0].extents, strict=True) if extent > 1]
    per_channel = repeats == [0] * (len(repeats) - 1) + [1] and buffer.shape == (form.extents[channel],)
    return read.buffer if per_channel else None
