"""How the weights of a node are stored: their type, the channels and the blocks that have a scale."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from hexqdq.qtypes import QType
from hexqdq.quantize.planning.encodings import NARROW_BITS
from hexqdq.quantize.planning.graph import constant, input_at, output_channels, weight_axis
from hexqdq.quantize.recipe import Recipe


@dataclass(frozen=True)
class WeightForm:
    """The element type; a scale per channel along ``axis``, or one; per ``block`` elements of a channel, or all."""

    dtype: QType
    axis: int | None
    block: int = 0


def weight_form(node: ir.Node, recipe: Recipe, activations: QType | None = None) -> WeightForm:
    """The form of a contraction's constant weights under a recipe, with inputs of type ``activations``.

    Unsigned weights go with unsigned 8-bit inputs only, as NPU back ends have it. Kernels of one channel
    each, few and worth little, keep 8 bits. Blocks divide the rows of matrices of 4 bits.
    """
    dtype = recipe.weights
    if dtype is QType.U8 and (activations or recipe.activations) is not QType.U8:
        dtype = QType.S8
    if dtype.bits < NARROW_BITS and _is_depthwise(node):
        dtype = QType.S8
    axis = weight_axis(node) if recipe.per_channel else None
    return WeightForm(dtype, axis, _block(node, recipe, axis) if dtype.bits < NARROW_BITS else 0)


def factor_type(recipe: Recipe) -> QType:
    """The type of the weights of normalizations, which scale channels: 8 bits at least, signed."""
    return QType.S8 if recipe.weights.bits <= NARROW_BITS else recipe.weights


def _is_depthwise(node: ir.Node) -> bool:
    groups = node.attributes["group"].as_int() if "group" in node.attributes else 1
    return groups > 1 and groups == output_channels(node)


def _block(node: ir.Node, recipe: Recipe, axis: int | None) -> int:
    weights = constant(input_at(node, 1))
    if axis is None or weights is None or weights.ndim != 2 or not recipe.weight_block:
        return 0
    length = weights.shape[1 - axis]
    return recipe.weight_block if length % recipe.weight_block == 0 else 0
