"""What the constants of normalizations and recurrences become."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from hexqdq import numerics
from hexqdq.ops.traits import Trait
from hexqdq.qtypes import QType, QuantParams
from hexqdq.quantize.planning.graph import constant, input_at, spec_of
from hexqdq.quantize.recipe import Recipe
from hexqdq.quantize.writing.forms import factor_type
from hexqdq.quantize.writing.weights import QuantizedConstant, quantize_bias, quantize_weights

Array = NDArray[Any]
Placed = tuple[int, str, QuantizedConstant]
"""The input position, what stands there, its integers."""

ROWS_AXIS = 1
"""Of a recurrence's weights [directions, gates x hidden, columns] and its bias [directions, 2 x gates x hidden]."""


def has_trait(node: ir.Node, trait: Trait) -> bool:
    spec = spec_of(node)
    return spec is not None and spec.trait is trait


def quantize_normalization(node: ir.Node, recipe: Recipe, input_scale: float) -> Iterator[Placed]:
    """The scale as a weight of the tensor's own scale; the bias as s32 of input x weight."""
    factors, shifts = constant(input_at(node, 1)), constant(input_at(node, 2))
    if factors is None:
        return
    weights = quantize_weights(factors, None, factor_type(recipe), input_scale, shifts)
    yield 1, "weight", weights
    if shifts is not None:
        yield 2, "bias", quantize_bias(shifts, input_scale, weights.params)


def quantize_recurrence(node: ir.Node, recipe: Recipe, input_scale: float, state_scale: float) -> Iterator[Placed]:
    """Weights of the input and of the state, per row; the two biases, in one tensor, in the scale of either product."""
    inner, outer = constant(input_at(node, 1)), constant(input_at(node, 2))
    if inner is None or outer is None:
        return
    biases = constant(input_at(node, 3))
    halves = [None, None] if biases is None else [abs(half).max(axis=0) for half in np.split(biases, 2, ROWS_AXIS)]
    axis = ROWS_AXIS if recipe.per_channel else None
    dtype = QType.S8 if recipe.weights is QType.U8 else recipe.weights
    scales = (input_scale, state_scale)
    made = [
        quantize_weights(values, axis, dtype, scale, half)
        for values, scale, half in zip((inner, outer), scales, halves, strict=True)
    ]
    yield 1, "weight", made[0]
    yield 2, "state_weight", made[1]
    if biases is not None:
        yield 3, "bias", _biases(biases, [np.float32(s) * m.params.scales() for s, m in zip(scales, made, strict=True)])


def _biases(values: Array, scales: list[NDArray[np.float32]]) -> QuantizedConstant:
    rows = values.shape[ROWS_AXIS] // 2
    every = np.concatenate([np.broadcast_to(half, (rows,)) for half in scales])
    params = QuantParams.per_channel(QType.S32, every, np.zeros(every.shape, np.int64), ROWS_AXIS)
    return QuantizedConstant(numerics.quantize(values, params), params)
