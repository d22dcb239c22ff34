"""Transposed convolutions that only add up overlapping windows become the convolutions they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from hexqdq.import_.passes.affine import add_initializer, constant

Array = NDArray[Any]


def rewrite_transposed(model: ir.Model) -> int:
    """Replaces every ConvTranspose of stride 1 and constant weights by a Conv; returns how many.

    With W' [M, C/g, k] holding the kernels W [C, M/g, k] of each group mirrored and turned around,

        ConvTranspose(x, W, pads p) = Conv(x, W', pads dilation (k - 1) - p)

    A Conv has a scale per output channel in any grouping; a grouped ConvTranspose has none.
    """
    found = [(node, pads) for node in model.graph if (pads := _pads_of_conv(node)) is not None]
    for node, pads in found:
        _replace(model.graph, node, pads)
    return len(found)


def _pads_of_conv(node: ir.Node) -> list[int] | None:
    """The pads of the Conv that a node is, None where it is none."""
    if (node.domain, node.op_type) != ("", "ConvTranspose") or (weights := constant(node.inputs[1])) is None:
        return None
    kernel = weights.shape[2:]
    if any(stride != 1 for stride in _ints(node, "strides", len(kernel), 1)) or "auto_pad" in node.attributes:
        return None
    if any(_ints(node, "output_padding", len(kernel), 0)) or "output_shape" in node.attributes:
        return None
    reach = [
        dilation * (size - 1) for size, dilation in zip(kernel, _ints(node, "dilations", len(kernel), 1), strict=True)
    ]
    pads = [place - pad for place, pad in zip(reach * 2, _ints(node, "pads", 2 * len(kernel), 0), strict=True)]
    return pads if min(pads, default=0) >= 0 else None


def _replace(graph: ir.Graph, node: ir.Node, pads: list[int]) -> None:
    weights = constant(node.inputs[1])
    assert weights is not None
    groups = node.attributes["group"].as_int() if "group" in node.attributes else 1
    turned = _turned(weights, groups)
    value = add_initializer(graph, f"{node.name}_turned", turned)
    kept = [attribute for name, attribute in node.attributes.items() if name in ("dilations", "group", "kernel_shape")]
    attributes = [*kept, ir.AttrInt64s("pads", pads)]
    inputs = [node.inputs[0], value, *node.inputs[2:]]
    conv = ir.Node("", "Conv", inputs, attributes, name=node.name, num_outputs=1)
    graph.insert_after(node, conv)
    (old,), (new,) = node.outputs, conv.outputs
    new.type, new.shape = old.type, old.shape
    ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)
    new.name, old.name = old.name, None
    graph.remove(node, safe=True)


def _turned(weights: Array, groups: int) -> Array:
    """Kernels [C, M/g, k] mirrored, as [M, C/g, k]."""
    channels, outputs, *kernel = weights.shape
    parts = weights.reshape(groups, channels // groups, outputs, *kernel).swapaxes(1, 2)
    mirrored = np.flip(parts, tuple(range(3, parts.ndim)))
    return np.ascontiguousarray(mirrored.reshape(groups * outputs, channels // groups, *kernel))


def _ints(node: ir.Node, name: str, count: int, default: int) -> list[int]:
    return list(node.attributes[name].as_ints()) if name in node.attributes else [default] * count
