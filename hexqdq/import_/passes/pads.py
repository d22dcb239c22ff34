"""Writes the padding that ``auto_pad`` or an output shape stands for as explicit pads."""

from __future__ import annotations

import onnx_ir as ir

from hexqdq.errors import ModelError

_WINDOWED = frozenset({"Conv", "MaxPool", "AveragePool", "LpPool"})


def resolve_auto_pad(model: ir.Model) -> int:
    """Replaces ``auto_pad`` of convolutions and pools by ``pads``; returns how many nodes changed.

    So it does with ``output_shape`` of ConvTranspose.
    """
    changed = 0
    for node in model.graph:
        if node.domain == "" and node.op_type == "ConvTranspose":
            changed += _resolve_transposed(node)
        if node.domain == "" and node.op_type in _WINDOWED and "auto_pad" in node.attributes:
            mode = node.attributes.pop("auto_pad").as_string()
            if mode != "NOTSET":
                node.attributes["pads"] = ir.AttrInt64s("pads", _pads(node, mode))
            changed += 1
    return changed


def _resolve_transposed(node: ir.Node) -> bool:
    """The pads, and the output padding, of a ConvTranspose whose output's size is given (ONNX's equations)."""
    mode = node.attributes.pop("auto_pad").as_string() if "auto_pad" in node.attributes else "NOTSET"
    sizes, kernel = _sizes(node)
    strides = _ints(node, "strides", len(kernel))
    if "output_shape" in node.attributes:
        wanted = tuple(node.attributes.pop("output_shape").as_ints())[-len(kernel) :]
    elif mode in ("SAME_UPPER", "SAME_LOWER"):
        wanted = tuple(size * stride for size, stride in zip(sizes, strides, strict=True))
    else:
        return False
    dilations = _ints(node, "dilations", len(kernel))
    grown = list(_ints(node, "output_padding", len(kernel), 0))
    begins, ends = [], []
    for axis, size in enumerate(sizes):
        span = (kernel[axis] - 1) * dilations[axis] + 1
        total = strides[axis] * (size - 1) + grown[axis] + span - wanted[axis]
        grown[axis] += max(-total, 0)
        smaller, larger = max(total, 0) // 2, max(total, 0) - max(total, 0) // 2
        begins.append(smaller if mode == "SAME_UPPER" else larger)
        ends.append(larger if mode == "SAME_UPPER" else smaller)
    node.attributes["pads"] = ir.AttrInt64s("pads", begins + ends)
    node.attributes["output_padding"] = ir.AttrInt64s("output_padding", grown)
    return True


def _pads(node: ir.Node, mode: str) -> list[int]:
    """Begin pads of every spatial dimension, then end pads (the ONNX equation of SAME_UPPER and SAME_LOWER)."""
    sizes, kernel = _sizes(node)
    if mode == "VALID":
        return [0] * (2 * len(kernel))
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise ModelError(f"node {node.name!r}", f"auto_pad {mode!r} is unknown", "use explicit pads")
    strides, dilations = _ints(node, "strides", len(kernel)), _ints(node, "dilations", len(kernel))
    begins, ends = [], []
    for size, window, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
        outputs = -(-size // stride)
        total = max((outputs - 1) * stride + (window - 1) * dilation + 1 - size, 0)
        smaller, larger = total // 2, total - total // 2
        begins.append(smaller if mode == "SAME_UPPER" else larger)
        ends.append(larger if mode == "SAME_UPPER" else smaller)
    return begins + ends


def _sizes(node: ir.Node) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Spatial sizes of the input and of the window."""
    data = node.inputs[0]
    assert data is not None and data.shape is not None
    spatial = data.shape.numpy()[2:]
    if "kernel_shape" in node.attributes:
        return spatial, tuple(node.attributes["kernel_shape"].as_ints())
    weight = node.inputs[1]
    assert weight is not None and weight.shape is not None
    return spatial, weight.shape.numpy()[2:]


def _ints(node: ir.Node, name: str, count: int, default: int = 1) -> tuple[int, ...]:
    return tuple(node.attributes[name].as_ints()) if name in node.attributes else (default,) * count
