"""The published rules of ONNX Runtime's QNN provider for QDQ node groups, in our words.

Source: onnxruntime, core/optimizer/qdq_transformer (what makes a node group) and core/providers/qnn
(what its op builders take).
"""

from __future__ import annotations

import onnx_ir as ir

from hexqdq.app.rules.group import NodeGroup
from hexqdq.app.rules.rule import (
    Kind,
    Rule,
    attribute_is,
    constant_at,
    encodings,
    everywhere,
    fixed_encoding,
    given_to_q,
    no_q,
    one_encoding,
    one_type,
    positions,
    read_through_dq,
)

ACTIVATIONS = ("u8", "s8", "u16", "s16")
WEIGHTS = ("s8", "u8", "s4", "s16")
FIRST = positions(0)
BOTH = positions(0, 1)
SMALLEST_BLOCK = 16

READS = "the data come through DQ"
GIVES = "each result goes to one Q and nowhere else"
MOVES = "input and output share scale and zero point"
SAME = "input and output have one type"
ALL_SAME = "all inputs and the output have one type"
PARAMETERS = "parameters are constant"
S8_WEIGHTS = "s8 activations go with s8 (or s4) weights"
WIDE_WEIGHTS = "16-bit activations go with s8 (or s4) weights, symmetric"
BIAS = "the bias is s32 through DQ"
CHANNEL_AXIS = "scales of weights lie along their output channels: axis 0, of ConvTranspose 1, of products the columns"
BLOCKS = "weights in blocks are constant s4 of rank 2, blocks along axis 0, of a power of two from 16 on"


WEIGHT_TYPES = "weights are s8, u8, s4 or s16"
CONV_RANK = "the data have rank 3 to 5"
NORM_RANK = "the data have rank 4 at most"
INDICES = "integers are the result, which no Q follows"
TRUTH = "truth values are the result, which no Q follows"
COMPARED = "both inputs have one type"
LAST_AXIS = "it is taken over the last axis"
FILL = "the constant that fills is given, and constant"
ALPHA = "alpha is 1"
BETA = "beta is 1"
ANTIALIAS = "antialias is 0"
EXCLUSIVE = "exclusive is 0"
REVERSE = "reverse is 0"
TYPES = "activations are u8, s8, u16 or s16"
ONE_SCALE = "activations have one scale and zero point"
STATIC = "shapes are static"
NO_GRAPH = "there is no If, Loop or Scan"
TWO_OF_THREE = "both data inputs and the output have one type"
UNIT_INTERVAL = "the result has scale 1/256 (16 bits: 1/65536) with 0 at the lowest integer"
MIDDLE = "the result has scale 1/128 (16 bits: 1/32768) around the middle"
KNOWN_OPS = "the op is one of the node groups"
LONE_CHANNELS = "a Q or DQ with a scale per channel stands only before weights and biases"


def _weights(group: NodeGroup) -> str | None:
    """The types of constant weights; computed ones are activations."""
    weights = group.input(1)
    if weights is None or weights.encoding is None:
        return None
    types = ACTIVATIONS if weights.constant is None else WEIGHTS
    return None if weights.encoding.dtype in types else f"{weights.encoding.dtype} in {weights.value.name!r}"


def _weight_types(activations: tuple[str, ...], sentence: str, symmetric: bool) -> Rule:
    def test(group: NodeGroup) -> str | None:
        data, weights = group.input(0), group.input(1)
        if data is None or weights is None or data.encoding is None or weights.encoding is None:
            return None
        found = weights.encoding
        if data.encoding.dtype not in activations or (weights.constant is None and symmetric):
            return None
        if found.dtype not in ("s8", "s4"):
            return f"{data.encoding.dtype} activations and {found.dtype} weights"
        return "a zero point other than 0" if symmetric and not found.is_symmetric else None

    return Rule(sentence, test)


def _bias(group: NodeGroup) -> str | None:
    bias = group.input(2)
    if bias is None:
        return None
    if bias.encoding is None:
        return f"{bias.value.name!r} without DQ"
    return None if bias.encoding.dtype == "s32" else f"{bias.encoding.dtype} in {bias.value.name!r}"


def _channel_axis(group: NodeGroup) -> str | None:
    weights = group.input(1)
    if weights is None or weights.encoding is None or weights.encoding.axis is None or weights.encoding.block:
        return None
    axis, expected = weights.encoding.axis % max(weights.rank, 1), _weight_axis(group, weights.rank)
    return None if axis == expected else f"axis {axis}; expected {expected}"


def _weight_axis(group: NodeGroup, rank: int) -> int:
    if group.node.op_type == "Conv":
        return 0
    if group.node.op_type == "ConvTranspose":
        return 1
    return 0 if group.attribute("transB", 0) else rank - 1


def _blocks(group: NodeGroup) -> str | None:
    weights = group.input(1)
    if weights is None or weights.encoding is None or not weights.encoding.block:
        return None
    found = weights.encoding
    if weights.constant is None or found.dtype != "s4" or weights.rank != 2 or found.axis != 0:
        return f"{found.dtype} of rank {weights.rank}, blocks along axis {found.axis}"
    power = found.block & (found.block - 1) == 0
    return None if power and found.block >= SMALLEST_BLOCK else f"blocks of {found.block}"


def _conv_rank(group: NodeGroup) -> str | None:
    data = group.input(0)
    return None if data is None or 3 <= data.rank <= 5 else f"rank {data.rank}"


def _norm_rank(group: NodeGroup) -> str | None:
    data = group.input(0)
    return None if data is None or data.rank <= 4 else f"rank {data.rank}"


def _last_axis(group: NodeGroup) -> str | None:
    data = group.input(0)
    axis = int(group.attribute("axis", -1))
    return None if data is None or axis in (-1, data.rank - 1) else f"axis {axis} of rank {data.rank}"


def _pad_constant(group: NodeGroup) -> str | None:
    if str(group.attribute("mode", "constant")) != "constant":
        return None
    value = group.input(2)
    return None if value is not None and value.constant is not None else "no constant"


def _data_types(group: NodeGroup) -> str | None:
    """Whether data of an op without weights, and results, are activations."""
    data = everywhere(group) if group.node.op_type not in WITH_WEIGHTS else (0,)
    for encoding in encodings(group, data):
        if encoding.dtype not in ACTIVATIONS:
            return encoding.dtype
    return None


def _one_scale(group: NodeGroup) -> str | None:
    data = everywhere(group) if group.node.op_type not in WITH_WEIGHTS else (0,)
    for encoding in encodings(group, data):
        if encoding.axis is not None:
            return str(encoding)
    return None


def _static(group: NodeGroup) -> str | None:
    for operand in (*group.inputs, *group.outputs):
        shape = operand.value.shape if operand is not None else None
        if shape is not None and not all(isinstance(size, int) for size in shape):
            return f"{operand.value.name!r} of shape {shape}" if operand is not None else None
    return None


def _no_inner_graph(group: NodeGroup) -> str | None:
    inner = [name for name, found in group.node.attributes.items() if found.type == ir.AttributeType.GRAPH]
    return f"{group.node.op_type} with the graph {inner[0]!r}" if inner else None


CONTRACTION = (
    read_through_dq(BOTH, READS),
    given_to_q(GIVES),
    one_type(FIRST, SAME),
    Rule(WEIGHT_TYPES, _weights),
    _weight_types(("s8",), S8_WEIGHTS, symmetric=False),
    _weight_types(("u16", "s16"), WIDE_WEIGHTS, symmetric=True),
    Rule(BIAS, _bias),
    Rule(CHANNEL_AXIS, _channel_axis),
    Rule(BLOCKS, _blocks),
)
UNARY = (read_through_dq(FIRST, READS), given_to_q(GIVES), one_type(FIRST, SAME))
ONE_TYPE = (read_through_dq(everywhere, READS), given_to_q(GIVES), one_type(everywhere, ALL_SAME))
NORMALIZATION = (
    read_through_dq(BOTH, READS),
    given_to_q(GIVES, slice(1)),
    one_type(FIRST, SAME),
    Rule(BIAS, _bias),
)

NORMS = ("LayerNormalization", "InstanceNormalization", "RMSNormalization")
WITH_WEIGHTS = ("Conv", "ConvTranspose", "MatMul", "Gemm", *NORMS)

KINDS: tuple[Kind, ...] = (
    Kind("conversion", ("Cast",), ()),  # a unit without Q and DQ, between floats and what is none
    Kind(
        "data movement",
        (
            *("Gather", "GatherElements", "Reshape", "Expand", "Flatten", "Transpose"),
            *("MaxPool", "Resize", "Squeeze", "Unsqueeze", "Tile"),
        ),
        (read_through_dq(FIRST, READS), given_to_q(GIVES, slice(1)), one_encoding(MOVES)),
    ),
    Kind(
        "index result",
        ("ArgMax", "ArgMin"),
        (read_through_dq(FIRST, READS), no_q(INDICES)),
    ),
    Kind(
        "comparison",
        ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"),
        (
            read_through_dq(BOTH, READS),
            no_q(TRUTH),
            one_type(BOTH, COMPARED),
        ),
    ),
    Kind(
        "unary",
        (
            *("AveragePool", "GlobalAveragePool", "GlobalMaxPool"),
            *("ReduceMean", "ReduceMin", "ReduceMax", "ReduceProd", "ReduceSum"),
            *("Relu", "LeakyRelu", "Elu", "Gelu", "HardSwish", "HardSigmoid", "Sigmoid", "Tanh", "Clip"),
            *("Softmax", "LogSoftmax", "LRN", "LpNormalization", "CumSum"),
            *("Sqrt", "Exp", "Log", "Abs", "Neg", "Sign", "Ceil", "Floor", "Round", "Sin", "Cos", "Asin", "Atan"),
            *("Slice", "Pad", "DepthToSpace", "SpaceToDepth"),
        ),
        UNARY,
    ),
    Kind("binary", ("Add", "Div", "Mul", "Pow", "Sub", "PRelu", "GridSample"), ONE_TYPE),
    Kind("variadic", ("Concat", "Max", "Min"), ONE_TYPE),
    Kind("split", ("Split",), UNARY),
    Kind("top", ("TopK",), (read_through_dq(FIRST, READS), given_to_q(GIVES, slice(1)), one_encoding(MOVES))),
    Kind("convolution", ("Conv", "ConvTranspose"), (*CONTRACTION, Rule(CONV_RANK, _conv_rank))),
    Kind("product", ("MatMul", "Gemm"), CONTRACTION),
    Kind("normalization", NORMS, NORMALIZATION),
    Kind(
        "choice",
        ("Where",),
        (
            read_through_dq(positions(1, 2), READS),
            given_to_q(GIVES),
            one_type(positions(1, 2), TWO_OF_THREE),
        ),
    ),
    Kind(
        "scatter",
        ("ScatterElements",),
        (
            read_through_dq(positions(0, 2), READS),
            given_to_q(GIVES),
            one_type(positions(0, 2), TWO_OF_THREE),
        ),
    ),
)

OF_OP: dict[str, tuple[Rule, ...]] = {
    "Softmax": (fixed_encoding(256, False, UNIT_INTERVAL),),
    "Sigmoid": (fixed_encoding(256, False, UNIT_INTERVAL),),
    "HardSigmoid": (fixed_encoding(256, False, UNIT_INTERVAL),),
    "Tanh": (fixed_encoding(128, True, MIDDLE),),
    "Gemm": (
        attribute_is("alpha", 1.0, ALPHA, 1.0),
        attribute_is("beta", 1.0, BETA, 1.0),
    ),
    "LayerNormalization": (Rule(LAST_AXIS, _last_axis),),
    "RMSNormalization": (Rule(LAST_AXIS, _last_axis), Rule(NORM_RANK, _norm_rank)),
    "Pad": (
        constant_at((1, 3), PARAMETERS),
        Rule(FILL, _pad_constant),
    ),
    "Slice": (constant_at((1, 2, 3, 4), PARAMETERS),),
    "Split": (constant_at((1,), PARAMETERS),),
    "Expand": (constant_at((1,), PARAMETERS),),
    "Tile": (constant_at((1,), PARAMETERS),),
    "Resize": (attribute_is("antialias", 0, ANTIALIAS, 0),),
    "CumSum": (
        attribute_is("exclusive", 0, EXCLUSIVE, 0),
        attribute_is("reverse", 0, REVERSE, 0),
    ),
}
"""What single ops ask for besides."""


OF_ANY: tuple[Rule, ...] = (Rule(STATIC, _static), Rule(NO_GRAPH, _no_inner_graph))
"""What any node is asked for, even one that is in no group."""
OF_ALL: tuple[Rule, ...] = (Rule(TYPES, _data_types), Rule(ONE_SCALE, _one_scale), *OF_ANY)
"""What every node of a group is asked for."""
