"""Odd but legal QDQ graphs: what exporters and people write, one per way in which a cut can go wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

_HEAD = '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>\n'
_CONSTANTS = {
    "s": np.float32(0.05),
    "s2": np.float32(0.02),
    "s_wide": np.float32(0.1),
    "s_out": np.float32(0.11),
    "z": np.uint8(120),
    "z0": np.uint8(0),
    "zs": np.int8(-3),
    "zw": np.int8(0),
    "z16": np.uint16(30000),
    "zb": np.int32(0),
    "sw": np.float32(0.01),
    "sb": np.float32(np.float32(0.05) * np.float32(0.01)),
    "zero": np.float32(0.0),
    "six": np.float32(6.0),
    "one_each": np.array([1, 1], np.int64),
    "eight": np.array([1, 8], np.int64),
    "square": np.array([1, 2, 2, 2], np.int64),
    "truth": np.bool_(True),
    "s_many": np.array([0.05, 0.06], np.float32),
    "z_many": np.array([120, 121], np.uint8),
}


def model(inputs: str, outputs: str, *lines: str) -> onnx.ModelProto:
    """A model from text lines, in which weights, biases, scales and zero points are there by name."""
    body = "\n".join(line + ";" if not line.endswith(";") else line for line in lines).replace(";", "\n")
    proto = onnx.parser.parse_model(f"{_HEAD}odd ({inputs}) => ({outputs}) {{\n{body}\n}}")
    generator = np.random.default_rng(7)
    arrays: dict[str, NDArray[Any]] = {name: np.asarray(value) for name, value in _CONSTANTS.items()}
    arrays["w"] = generator.integers(-127, 128, (2, 2, 1, 1)).astype(np.int8)
    arrays["wm"] = generator.integers(-127, 128, (8, 8)).astype(np.int8)
    arrays["wf"] = generator.normal(0, 0.5, (2, 2, 1, 1)).astype(np.float32)
    arrays["b"] = generator.integers(-900, 900, 2).astype(np.int32)
    arrays["bm"] = generator.integers(-900, 900, 8).astype(np.int32)
    arrays["bm_row"] = arrays["bm"].reshape(1, 8)
    used = {name for node in proto.graph.node for name in node.input} | {output.name for output in proto.graph.output}
    for name, array in arrays.items():
        if name in used:
            proto.graph.initializer.append(numpy_helper.from_array(array, name))
    return proto


_X = "float[1,2,2,2] x"
_QX = ("xq = QuantizeLinear(x, s, z)", "xd = DequantizeLinear(xq, s, z)")
_W = ("wd = DequantizeLinear(w, sw, zw)", "bd = DequantizeLinear(b, sb, zb)")
_CONV = (*_QX, *_W, "c = Conv(xd, wd, bd)", "cq = QuantizeLinear(c, s_wide, z)", "cd = DequantizeLinear(cq, s_wide, z)")

ODD: dict[str, onnx.ModelProto] = {
    "plain": model(_X, "float[1,2,2,2] cd", *_CONV),
    "integers_and_floats_out": model(_X, "uint8[1,2,2,2] cq, float[1,2,2,2] cd", *_CONV),
    "q_on_input_only": model(_X, "uint8[1,2,2,2] xq", "xq = QuantizeLinear(x, s, z)"),
    "dq_on_input_only": model("uint8[1,2,2,2] x", "float[1,2,2,2] y", "y = DequantizeLinear(x, s, z)"),
    "q_dq_only": model(_X, "float[1,2,2,2] xd", *_QX),
    "inside_and_outside": model(
        _X,
        "float[1,2,2,2] y, float[1,2,2,2] ed",
        *_CONV,
        "y = Sin(cd)",
        "e = Relu(cd)",
        "eq = QuantizeLinear(e, s_wide, z)",
        "ed = DequantizeLinear(eq, s_wide, z)",
    ),
    "host_bridge": model(
        _X,
        "float[1,2,2,2] ad",
        *_CONV,
        "h = Cos(cd)",
        "hq = QuantizeLinear(h, s_wide, z)",
        "hd = DequantizeLinear(hq, s_wide, z)",
        "a = Add(cd, hd)",
        "aq = QuantizeLinear(a, s_wide, z)",
        "ad = DequantizeLinear(aq, s_wide, z)",
    ),
    "dq_shared_by_both_sides": model(
        _X, "float[1,2,2,2] y, float[1,2,2,2] n", *_CONV, "y = Sin(cd)", "n = Cos(xd)"
    ),
    "several_dqs": model(
        _X,
        "float[1,2,2,2] ad, float[1,2,2,2] c2",
        *_CONV,
        "c2 = DequantizeLinear(cq, s, z0)",
        "a = Add(cd, c2)",
        "aq = QuantizeLinear(a, s_out, z)",
        "ad = DequantizeLinear(aq, s_out, z)",
    ),
    "two_float_outputs_of_one": model(
        _X, "float[1,2,2,2] cd, float[1,2,2,2] c2", *_CONV, "c2 = DequantizeLinear(cq, s, z0)"
    ),
    "requantize": model(
        _X,
        "float[1,2,2,2] rd",
        *_CONV,
        "r = QuantizeLinear(cd, s_out, z0)",
        "rd = DequantizeLinear(r, s_out, z0)",
    ),
    "requantize_to_another_type": model(
        _X, "float[1,2,2,2] rd", *_CONV, "r = QuantizeLinear(cd, s_out, zs)", "rd = DequantizeLinear(r, s_out, zs)"
    ),
    "missing_q": model(_X, "float[1,2,2,2] c", *_QX, *_W, "c = Conv(xd, wd, bd)"),
    "float_read_twice": model(
        _X,
        "float[1,2,2,2] cd, float[1,2,2,2] n",
        *_CONV,
        "n = Cos(c)",
    ),
    "two_qs": model(
        _X,
        "float[1,2,2,2] cd, float[1,2,2,2] c2",
        *_CONV,
        "q2 = QuantizeLinear(c, s, z)",
        "c2 = DequantizeLinear(q2, s, z)",
    ),
    "shared_weights": model(
        _X,
        "float[1,2,2,2] ed",
        *_CONV,
        "e = Conv(cd, wd)",
        "eq = QuantizeLinear(e, s_wide, z)",
        "ed = DequantizeLinear(eq, s_wide, z)",
    ),
    "weights_quantized_in_graph": model(
        _X,
        "float[1,2,2,2] cd",
        *_QX,
        "wq = QuantizeLinear(wf, sw, zw)",
        "wd = DequantizeLinear(wq, sw, zw)",
        "c = Conv(xd, wd)",
        "cq = QuantizeLinear(c, s_wide, z)",
        "cd = DequantizeLinear(cq, s_wide, z)",
    ),
    "bare_movement": model(
        "uint8[1,2,2,2] x",
        "uint8[1,8] y, float[1,2,2,2] rd",
        "t = Transpose<perm = [0, 2, 3, 1]>(x)",
        "y = Reshape(t, eight)",
        "td = DequantizeLinear(t, s, z)",
        "r = Relu(td)",
        "rq = QuantizeLinear(r, s, z)",
        "rd = DequantizeLinear(rq, s, z)",
    ),
    "movement_with_other_parameters": model(
        _X,
        "float[1,8] fd",
        *_QX,
        "f = Flatten(xd)",
        "fq = QuantizeLinear(f, s2, z)",
        "fd = DequantizeLinear(fq, s2, z)",
    ),
    "movement_with_equal_parameters": model(
        _X, "float[1,8] fd", *_QX, "f = Flatten(xd)", "fq = QuantizeLinear(f, s, z)", "fd = DequantizeLinear(fq, s, z)"
    ),
    "matmul_and_row_bias": model(
        "float[1,8] x",
        "float[1,8] ad",
        *_QX,
        "wd = DequantizeLinear(wm, sw, zw)",
        "m = MatMul(xd, wd)",
        "bd = DequantizeLinear(bm_row, sb, zb)",
        "a = Add(bd, m)",
        "r = Relu(a)",
        "k = Clip(r, zero, six)",
        "aq = QuantizeLinear(k, s_wide, z0)",
        "ad = DequantizeLinear(aq, s_wide, z0)",
    ),
    "matmul_and_computed_addend": model(
        "float[1,8] x, float[1,8] y",
        "float[1,8] ad",
        *_QX,
        "wd = DequantizeLinear(wm, sw, zw)",
        "m = MatMul(xd, wd)",
        "a = Add(y, m)",
        "aq = QuantizeLinear(a, s_wide, z0)",
        "ad = DequantizeLinear(aq, s_wide, z0)",
    ),
    "clip_with_computed_bound": model(
        _X + ", float low",
        "float[1,2,2,2] kd",
        *_QX,
        "k = Clip(xd, low, six)",
        "kq = QuantizeLinear(k, s, z)",
        "kd = DequantizeLinear(kq, s, z)",
    ),
    "sixteen_bits": model(
        _X,
        "float[1,2,2,2] ad",
        "xq = com.microsoft.QuantizeLinear(x, s, z16)",
        "xd = com.microsoft.DequantizeLinear(xq, s, z16)",
        "a = Relu(xd)",
        "aq = com.microsoft.QuantizeLinear(a, s, z16)",
        "ad = com.microsoft.DequantizeLinear(aq, s, z16)",
    ),
    "scales_per_channel": model(
        _X,
        "float[1,2,2,2] ad",
        "xq = QuantizeLinear<axis = 1>(x, s_many, z_many)",
        "xd = DequantizeLinear<axis = 1>(xq, s_many, z_many)",
        "a = Relu(xd)",
        "aq = QuantizeLinear(a, s, z)",
        "ad = DequantizeLinear(aq, s, z)",
    ),
    "quantized_per_channel_read_per_tensor": model(
        _X,
        "float[1,2,2,2] ad",
        "xq = QuantizeLinear<axis = 1>(x, s_many, z_many)",
        "xd = DequantizeLinear(xq, s, z)",
        "a = Relu(xd)",
        "aq = QuantizeLinear(a, s, z)",
        "ad = DequantizeLinear(aq, s, z)",
    ),
    "captured_by_a_subgraph": model(
        _X,
        "float[1,2,2,2] y",
        *_CONV,
        "y = If(truth) <then_branch = yes () => (float[1,2,2,2] p) { p = Cos(cd) },"
        " else_branch = no () => (float[1,2,2,2] n) { n = Sinh(xd) }>",
    ),
    "added_to_itself": model(
        _X, "float[1,2,2,2] ad", *_QX, "a = Add(xd, xd)", "aq = QuantizeLinear(a, s_wide, z)",
        "ad = DequantizeLinear(aq, s_wide, z)",
    ),
    "split_read_apart": model(
        _X,
        "float[1,2,2,2] kd, float[1,1,2,2] bd",
        *_QX,
        "p, t = Split<axis = 1>(xd, one_each)",
        "aq = QuantizeLinear(p, s, z)",
        "ad = DequantizeLinear(aq, s, z)",
        "r = Relu(ad)",
        "rq = QuantizeLinear(r, s2, z0)",
        "rd = DequantizeLinear(rq, s2, z0)",
        "bq = QuantizeLinear(t, s, z)",
        "bd = DequantizeLinear(bq, s, z)",
        "k = Concat<axis = 1>(rd, bd)",
        "kq = QuantizeLinear(k, s_wide, z)",
        "kd = DequantizeLinear(kq, s_wide, z)",
    ),
    "split_without_q": model(
        _X,
        "float[1,1,2,2] ad, float[1,1,2,2] n",
        *_QX,
        "p, t = Split<axis = 1>(xd, one_each)",
        "aq = QuantizeLinear(p, s, z)",
        "ad = DequantizeLinear(aq, s, z)",
        "n = Cos(t)",
    ),
    "bare_split_and_concat": model(
        _X,
        "float[1,2,2,2] kd, uint8[1,1,2,2] p",
        "xq = QuantizeLinear(x, s, z)",
        "p, t = Split<axis = 1>(xq, one_each)",
        "k = Concat<axis = 1>(t, p)",
        "kd = DequantizeLinear(k, s, z)",
    ),
    "input_as_output": model(_X, "float[1,2,2,2] cd, float[1,2,2,2] x", *_CONV),
    "constant_output": model(_X, "float[1,2,2,2] cd, float six", *_CONV),
    "output_listed_twice": model(_X, "float[1,2,2,2] cd, float[1,2,2,2] cd", *_CONV),
    "float_only": model(_X, "float[1,2,2,2] y", "h = Cos(x)", "y = Sin(h)"),
}  # fmt: skip

ALL_NPU = frozenset(
    {
        "plain",
        "integers_and_floats_out",
        "requantize",
        "shared_weights",
        "weights_quantized_in_graph",
        "bare_movement",
        "bare_split_and_concat",
        "split_read_apart",
        "movement_with_equal_parameters",
        "matmul_and_row_bias",
        "quantized_per_channel_read_per_tensor",
        "added_to_itself",
    }
)
"""Members of which the NPU runs every op; a DQ that a segment cannot absorb may be left."""
