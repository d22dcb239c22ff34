"""What a contraction with constant weights becomes: integer weights, and a bias in their scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onnx_ir as ir
from numpy.typing import NDArray

from hexqdq.ops.traits import Trait
from hexqdq.qtypes import QType
from hexqdq.quantize.draft import Draft
from hexqdq.quantize.planning.graph import bias_vector, constant, input_at, output_channels, spec_of
from hexqdq.quantize.planning.select import Selection
from hexqdq.quantize.writing.forms import weight_form
from hexqdq.quantize.writing.weights import QuantizedConstant, quantize_bias, quantize_weights

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Contraction:
    """Integer weights of input 1; the bias, where there is one, with the node and the position that read it."""

    weights: QuantizedConstant
    bias: QuantizedConstant | None
    reader: ir.Node
    index: int


def has_constant_weights(node: ir.Node) -> bool:
    spec = spec_of(node)
    return spec is not None and spec.trait is Trait.CONTRACTION and constant(input_at(node, 1)) is not None


def bias_place(node: ir.Node, selection: Selection) -> tuple[ir.Node, int]:
    """The node and the input position that add a contraction's bias."""
    return selection.bias_adds.get(node, (node, 2))


def quantize_contraction(
    node: ir.Node, selection: Selection, draft: Draft, input_scale: float, activations: QType | None = None
) -> Contraction:
    """The constants of a contraction that reads ``activations``, with what the draft knows of it by name."""
    weights = constant(input_at(node, 1))
    assert weights is not None
    name = str(node.name)
    reader, index = bias_place(node, selection)
    values = constant(input_at(reader, index))
    bias = bias_vector(values, output_channels(node)) if values is not None else None
    if bias is not None and name in draft.corrections:
        bias = (bias + draft.corrections[name]).astype(bias.dtype)
    quantized = draft.weights.get(name)
    if quantized is None:
        form = weight_form(node, draft.recipe_of(name), activations)
        quantized = quantize_weights(weights, form.axis, form.dtype, input_scale, bias, form.block)
    stored = quantize_bias(bias, input_scale, quantized.params) if bias is not None else None
    return Contraction(quantized, stored, reader, index)
