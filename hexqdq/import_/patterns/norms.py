"""Normalizations from their parts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from hexqdq.import_.patterns.moments import Axes, deviation, inverse, is_variance, kept, mean, square_of
from hexqdq.import_.patterns.reading import between, dims, floats, integer, maker, number, operands, unviewed
from hexqdq.import_.patterns.rule import Builder, Found, Operand

RMS_OPSET = 23
GROUP_OPSET = 21
Array = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Norm:
    """``data`` over its deviation along ``axes``, or its root mean square, times ``scale`` plus ``shift``.

    Scale and shift have the data's rank, or none where there are none.
    """

    data: ir.Value
    axes: Axes
    epsilon: float
    centred: bool
    scale: Array
    shift: Array | None


def normalization(node: ir.Node) -> Found | None:
    """LayerNormalization, RMSNormalization or InstanceNormalization.

    ``(x - mean(x)) / sqrt(var(x) + e) * scale + shift`` (Ba, Kiros, Hinton 2016, "Layer Normalization",
    equation 4) and ``x / sqrt(mean(x^2) + e) * scale`` (Zhang, Sennrich 2019, "Root Mean Square Layer
    Normalization", equation 4).
    """
    for norm in _norms(node):
        write = _written(norm, dims(node.outputs[0]))
        opset = 17 if norm.centred else RMS_OPSET
        return Found(between(node, (norm.data,)), write, opset) if write is not None else None
    return None


def _norms(node: ir.Node) -> Iterator[Norm]:
    for body, shift in _bodies(node):
        found = (_norm(body, value, shift) for value in _parts(body))
        yield from (norm for norm in found if norm is not None)
    if node.op_type == "Add":
        yield from _of_moments(node)


def _bodies(node: ir.Node) -> Iterator[tuple[ir.Value, Array | None]]:
    """The product that may be a norm, and what is added to it."""
    if node.op_type in ("Mul", "Div"):
        yield node.outputs[0], None
    if node.op_type == "Add":
        for body, constant in operands(node):
            shift = floats(constant)
            if shift is not None:
                yield body, shift


def _parts(value: ir.Value, depth: int = 3) -> Iterator[ir.Value]:
    """The factors and divisors of a product, products among them."""
    node = value.producer()
    if node is None or node.domain != "" or node.op_type not in ("Mul", "Div") or not depth:
        return
    for part in node.inputs:
        if part is not None:
            yield part
            yield from _parts(part, depth - 1)


def _norm(body: ir.Value, value: ir.Value, shift: Array | None) -> Norm | None:
    """The norm whose inverse deviation, or deviation, is ``value``."""
    found = inverse(unviewed(value))
    if found is None:
        return None
    for data, over, centred in _sources(body, found.inner):
        factors = _product(body, {data: False, value: found.divides})
        source = deviation(data) if centred else (data, over)
        shape = dims(data)
        if factors is None or source is None or shape is None or dims(value) != kept(shape, over):
            continue
        scale = _multiplied(factors, len(shape))
        if scale.ndim == len(shape):
            return Norm(source[0], over, found.epsilon, centred, scale, shift)
    return None


def _multiplied(factors: Sequence[Array], rank: int) -> Array:
    scale = np.ones((1,) * rank, np.float32)
    for factor in factors:
        scale = scale * factor
    return scale.astype(np.float32)


def _of_moments(node: ir.Node) -> Iterator[Norm]:
    """``x * f + (shift - mean(x) * f)`` with ``f = scale / sqrt(var(x) + e)``."""
    for scaled, rest in operands(node):
        product, difference = maker(scaled, "Mul"), maker(rest, "Sub")
        shift = floats(difference.inputs[0]) if difference is not None else None
        moved = maker(difference.inputs[1], "Mul") if difference is not None else None
        if product is None or moved is None or shift is None:
            continue
        for (data, factor), (middle, same) in itertools.product(operands(product), operands(moved)):
            source, shape = mean(middle), dims(data)
            if factor is not same or source is None or shape is None or source[0] is not data:
                continue
            for value in (factor, *_parts(factor)):
                found = inverse(unviewed(value))
                if found is None or found.divides or not is_variance(found.inner, data, source[1]):
                    continue
                factors = _product(factor, {value: False})
                if factors is not None and dims(value) == dims(middle) == kept(shape, source[1]):
                    yield Norm(data, source[1], found.epsilon, True, _multiplied(factors, len(shape)), shift)


def _sources(body: ir.Value, inner: ir.Value) -> Iterator[tuple[ir.Value, Axes, bool]]:
    """What the norm multiplies: deviations whose variance is ``inner``, or data whose mean square it is."""
    for part in _parts(body):
        found = deviation(part)
        if found is not None and is_variance(inner, *found):
            yield part, found[1], True
    squares = mean(inner)
    data = square_of(squares[0]) if squares is not None else None
    if squares is not None and data is not None:
        yield data, squares[1], False


def _product(body: ir.Value, symbols: Mapping[ir.Value, bool]) -> list[Array] | None:
    """The constants of a product of every symbol once and of constants, None where the body is anything else.

    Each symbol comes with whether it is a divisor.
    """
    constants: list[Array] = []
    seen: list[ir.Value] = []

    def visit(value: ir.Value | None, *, divisor: bool) -> bool:
        if value is not None and value in symbols:
            seen.append(value)
            return divisor == symbols[value]
        values, node = floats(value), value.producer() if value is not None else None
        if values is not None:
            constants.append(np.asarray(1 / values if divisor else values))
            return True
        if node is None or node.domain != "" or node.op_type not in (("Mul",) if divisor else ("Mul", "Div")):
            return False
        left, right = node.inputs
        return visit(left, divisor=divisor) and visit(right, divisor=divisor or node.op_type == "Div")

    whole = visit(body, divisor=False) and len(seen) == len(symbols) and set(seen) == set(symbols)
    return constants if whole else None


def _written(norm: Norm, result: tuple[int, ...] | None) -> Callable[[Builder], ir.Value] | None:
    shape = dims(norm.data)
    if shape is None or result != shape:
        return None
    scale, shift = _full(norm.scale, shape, norm.axes), _full(norm.shift, shape, norm.axes)
    if scale is not None and (norm.shift is None or shift is not None):
        return lambda builder: _over_axes(builder, norm, shape, scale, shift)
    if norm.centred and len(shape) > 2 and norm.axes == tuple(range(2, len(shape))):
        return _per_channel(norm, shape)
    return None


def _full(values: Array | None, shape: tuple[int, ...], over: Axes) -> Array | None:
    """A constant as one value per element of the axes, None where it changes along others."""
    if values is None or values.ndim > len(shape):
        return None
    padded = values.reshape((1,) * (len(shape) - values.ndim) + values.shape)
    if any(size != 1 for axis, size in enumerate(padded.shape) if axis not in over):
        return None
    sizes = [shape[axis] for axis in over]
    return np.ascontiguousarray(np.broadcast_to(padded.reshape([padded.shape[axis] for axis in over]), sizes))


def _over_axes(builder: Builder, norm: Norm, shape: tuple[int, ...], scale: Array, shift: Array | None) -> ir.Value:
    """The norm along one last axis: others are moved there and back, several are seen as one."""
    others = [axis for axis in range(len(shape)) if axis not in norm.axes]
    order = [*others, *norm.axes]
    sizes = [shape[axis] for axis in order]
    seen = [*(shape[axis] for axis in others), scale.size]
    moves, views = order != sorted(order), len(norm.axes) > 1
    data = builder.op("Transpose", [norm.data], sizes, {"perm": order}) if moves else norm.data
    data = builder.op("Reshape", [data, np.array(seen, np.int64)], seen) if views else data
    inputs: list[Operand] = [data, *(values.reshape(-1) for values in (scale, shift) if values is not None)]
    op_type = "LayerNormalization" if norm.centred else "RMSNormalization"
    result = builder.op(op_type, inputs, seen, {"axis": -1, "epsilon": norm.epsilon})
    result = builder.op("Reshape", [result, np.array(sizes, np.int64)], sizes) if views else result
    if not moves:
        return result
    return builder.op("Transpose", [result], shape, {"perm": [order.index(axis) for axis in range(len(shape))]})


def last_axis(node: ir.Node) -> Found | None:
    """A norm over several last axes as one over one."""
    shape, scale = dims(node.inputs[0]) if node.inputs else None, None
    if node.op_type in ("LayerNormalization", "RMSNormalization") and len(node.inputs) > 1:
        scale = floats(node.inputs[1])
    data, given = node.inputs[0] if node.inputs else None, node.inputs[2] if len(node.inputs) > 2 else None
    shift = floats(given)
    if data is None or shape is None or scale is None or (given is not None and shift is None) or len(node.outputs) > 1:
        return None
    axis = integer(node, "axis", -1) % len(shape)
    if axis == len(shape) - 1:
        return None
    centred = node.op_type == "LayerNormalization"
    norm = Norm(data, tuple(range(axis, len(shape))), number(node, "epsilon", 1e-5), centred, scale, shift)
    write = _written(norm, shape)
    return Found((node,), write) if write is not None else None


def _per_channel(norm: Norm, shape: tuple[int, ...]) -> Callable[[Builder], ir.Value] | None:
    """InstanceNormalization, where scale and shift have one value per channel."""
    zero = np.zeros(1, np.float32)
    scale, shift = (_full(values, shape, (1,)) for values in (norm.scale, zero if norm.shift is None else norm.shift))
    if scale is None or shift is None:
        return None

    def build(builder: Builder) -> ir.Value:
        return builder.op("InstanceNormalization", [norm.data, scale, shift], shape, {"epsilon": norm.epsilon})

    return build


def group_normalization(node: ir.Node) -> Found | None:
    """Channels seen as groups, normalized, seen as before, scaled, shifted (Wu, He 2018, "Group Normalization")."""
    for body, shift in _bodies(node):
        for shown, scale in _scaled(body):
            data, inner = _grouped(shown)
            shape = dims(data)
            factors = _full(scale, shape, (1,)) if shape is not None else None
            shifts = _full(np.zeros(1, np.float32) if shift is None else shift, shape, (1,)) if shape else None
            if data is None or inner is None or factors is None or shifts is None or dims(node.outputs[0]) != shape:
                continue
            attributes = {"num_groups": (dims(inner.inputs[0]) or ())[1], "epsilon": number(inner, "epsilon", 1e-5)}
            inputs = (data, factors, shifts)
            return Found(between(node, (data,)), _group(inputs, shape or (), attributes), GROUP_OPSET)
    return None


def _group(
    inputs: Sequence[Operand], shape: tuple[int, ...], attributes: dict[str, float | int]
) -> Callable[[Builder], ir.Value]:
    return lambda builder: builder.op("GroupNormalization", inputs, shape, attributes)


def _scaled(body: ir.Value) -> Iterator[tuple[ir.Value, Array]]:
    node = maker(body, "Mul")
    if node is not None:
        for shown, constant in operands(node):
            scale = floats(constant)
            if scale is not None:
                yield shown, scale


def _grouped(shown: ir.Value) -> tuple[ir.Value | None, ir.Node | None]:
    """The data [batch, channels, ...] whose groups [batch, groups, rest] a norm without scale and shift sees."""
    behind = maker(shown, "Reshape")
    inner = maker(behind.inputs[0], "InstanceNormalization", "LayerNormalization") if behind is not None else None
    first = maker(inner.inputs[0], "Reshape") if inner is not None else None
    data = first.inputs[0] if first is not None else None
    whole, groups = dims(data), dims(first.outputs[0]) if first is not None else None
    if inner is None or whole is None or groups is None or whole != dims(shown) or len(groups) != 3:
        return None, None
    fits = groups[0] == whole[0] and len(whole) > 2 and whole[1] % groups[1] == 0
    last = inner.op_type == "InstanceNormalization" or integer(inner, "axis", -1) in (-1, 2)
    return (data, inner) if fits and last and _is_bare(inner) else (None, None)


def _is_bare(norm: ir.Node) -> bool:
    """Whether scales are 1 and shifts 0."""
    held = [floats(value) for value in norm.inputs[1:]]
    wanted = zip(held, (1.0, 0.0), strict=False)
    return all(values is not None and bool((values == number).all()) for values, number in wanted)
