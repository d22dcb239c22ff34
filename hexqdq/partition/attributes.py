"""ONNX attributes as a unit carries them, with the defaults that matter."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from hexqdq.ops.unit import Attribute

Attributes = dict[str, Attribute]
_PLAIN = (ir.AttributeType.INT, ir.AttributeType.FLOAT, ir.AttributeType.STRING)
_LISTS = (ir.AttributeType.INTS, ir.AttributeType.FLOATS)


def attributes_of(node: ir.Node) -> Attributes:
    """The numbers and strings among the node's attributes over the op's defaults."""
    given: Attributes = {}
    for name, attribute in node.attributes.items():
        if attribute.type in _PLAIN:
            given[name] = attribute.value
        elif attribute.type in _LISTS:
            given[name] = tuple(attribute.value)
    defaults = _DEFAULTS.get(node.op_type)
    return (defaults(node) if defaults else {}) | given


def _window(node: ir.Node, kernel: tuple[int, ...]) -> Attributes:
    rank = len(kernel)
    ones, zeros = (1,) * rank, (0,) * (2 * rank)
    return {"kernel_shape": kernel, "strides": ones, "dilations": ones, "pads": zeros}


def _conv(node: ir.Node) -> Attributes:
    weight = node.inputs[1]
    assert weight is not None and weight.shape is not None
    return {**_window(node, tuple(weight.shape.numpy()[2:])), "group": 1}


def _conv_transpose(node: ir.Node) -> Attributes:
    attributes = _conv(node)
    kernel = attributes["kernel_shape"]
    assert isinstance(kernel, tuple)
    return {**attributes, "output_padding": (0,) * len(kernel)}


def _pool(node: ir.Node) -> Attributes:
    kernel = tuple(node.attributes["kernel_shape"].as_ints())
    return {**_window(node, kernel), "ceil_mode": 0}


def _transpose(node: ir.Node) -> Attributes:
    data = node.inputs[0]
    assert data is not None and data.shape is not None
    return {"perm": tuple(reversed(range(len(data.shape))))}


_DEFAULTS: dict[str, Callable[[ir.Node], Attributes]] = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "AveragePool": lambda node: {**_pool(node), "count_include_pad": 0},
    "MaxPool": _pool,
    "Transpose": _transpose,
    "Gemm": lambda node: {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0},
    "Split": lambda node: {"axis": 0},
    "Pad": lambda node: {"mode": "constant"},
    "DepthToSpace": lambda node: {"mode": "DCR"},
    "Resize": lambda node: {
        "mode": "nearest",
        "coordinate_transformation_mode": "half_pixel",
        "nearest_mode": "round_prefer_floor",
    },
    "Softmax": lambda node: {"axis": -1},
    "HardSigmoid": lambda node: {"alpha": 0.2, "beta": 0.5},
    "LeakyRelu": lambda node: {"alpha": 0.01},
    "ReduceMean": lambda node: {"keepdims": 1, "noop_with_empty_axes": 0},
    "ArgMax": lambda node: {"axis": 0, "keepdims": 1, "select_last_index": 0},
    "Flatten": lambda node: {"axis": 1},
    "Reshape": lambda node: {"allowzero": 0},
}
