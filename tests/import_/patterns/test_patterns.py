"""Decomposed ops are put together again: the same numbers, and nothing that only looks like them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper

from hexqdq.import_.passes.constants import lift_constants
from hexqdq.import_.passes.infer import infer_shapes
from hexqdq.import_.passes.names import name_nodes
from hexqdq.import_.patterns import join_parts
from hexqdq.import_.pipeline import import_model
from hexqdq.import_.read import read_model
from tests.import_.models import outputs, parse

Array = NDArray[Any]
FLOAT_NOISE = 2e-6


def _normal(*shape: int, seed: int) -> Array:
    return np.random.default_rng(seed).normal(1, 0.5, shape).astype(np.float32)


CONSTANTS: dict[str, Array] = {
    "g": _normal(8, seed=1),
    "b": _normal(8, seed=2),
    "gc": _normal(6, 1, seed=3),
    "bc": _normal(6, 1, seed=4),
    "gm": _normal(1, 6, 1, seed=5),
    "bm": _normal(1, 6, 1, seed=6),
    "last": np.array([-1], np.int64),
    "middle": np.array([1], np.int64),
    "column": np.array([2, 6, 1], np.int64),
    "row": np.array([2, 1, 8], np.int64),
    "flat": np.array([2, 8], np.int64),
    "ones3": np.array([1, 1, 1], np.int64),
    "same": np.array([2, 6, 8], np.int64),
    "groups": np.array([2, 3, -1], np.int64),
    "rows_as_groups": np.array([4, 3, -1], np.int64),
    "plane": _normal(6, 8, seed=7),
    "ones": np.ones(3, np.float32),
    "zeros": np.zeros(3, np.float32),
    "twos": np.full(3, 2, np.float32),
}


def _block(*ranges: range) -> Array:
    return np.asarray(np.stack(np.meshgrid(*ranges, indexing="ij"), axis=-1), np.int64)


CONSTANTS |= {
    "at": np.array(2, np.int64),
    "backwards": np.array([7, 5, 3, 1], np.int64),
    "shuffled": np.array([2, 3, 4, 0, 1, 6], np.int64),
    "windows": np.arange(3)[:, None] + np.arange(6)[None, :],
    "from_end": np.array([-3, -2, -1], np.int64),
    "scattered": np.array([0, 3, 1] * 12, np.int64),
    "number": np.array(3, np.int64),
    "front": _block(range(2), range(2)),
    "inside": _block(range(2), range(6), range(1, 3)),
    "second": np.array([[1]], np.int64),
    "corner": _block(range(2), range(1, 2), range(1, 3)),
    "no_block": _block(range(2), range(2))[:, ::-1].copy(),
    **{f"z{number}": np.array([number], np.int64) for number in range(4)},
    "z11": np.array([1, 1], np.int64),
    "z23": np.array([2, 3], np.int64),
    "z12": np.array([1, 2], np.int64),
}
NUMBERS = {
    "half": 0.5, "one": 1.0, "two": 2.0, "three": 3.0, "six": 6.0, "zero": 0.0, "sixth": 1 / 6, "eighth": 0.125,
    "root": np.sqrt(2), "inverse_root": np.sqrt(0.5), "slope": np.sqrt(2 / np.pi), "cube": 0.044715,
    "e": 1e-5, "minus_half": -0.5, "minus": -1.0, "infinity": np.inf, "low": -np.inf, "other_root": 1.41,
    "other_cube": 0.0447, "negligible": 1e-12, "large": -3e38, "seven": 7.0, "sixth_of_six": 0.16,
}  # fmt: skip


def model(body: str, result: str = "float[2,6,8] y", opset: int = 17) -> onnx.ModelProto:
    """A model of x [2,6,8] from text, in which constants and numbers are there by name."""
    made = parse(f"m (float[2,6,8] x) => ({result}) {{ {body} }}", opset)
    used = {name for node in made.graph.node for name in node.input}
    held = {**CONSTANTS, **{name: np.array(number, np.float32) for name, number in NUMBERS.items()}}
    made.graph.initializer.extend(numpy_helper.from_array(held[name], name) for name in sorted(used & set(held)))
    return made


MEAN = "mean = ReduceMean <axes = [-1]> (x) d = Sub(x, mean)"
VARIANCE = f"{MEAN} sq = Mul(d, d) v = ReduceMean <axes = [-1]> (sq) ve = Add(v, e) s = Sqrt(ve)"
SQUARES = "sq = Pow(x, two) v = ReduceMean <axes = [-1]> (sq) ve = Add(v, e) s = Sqrt(ve)"
JOINED: dict[str, tuple[str, list[str]]] = {
    "gelu": ("a = Div(x, root) f = Erf(a) p = Add(f, one) h = Mul(x, p) y = Mul(h, half)", ["Gelu"]),
    "gelu_half_first": ("a = Mul(x, inverse_root) f = Erf(a) p = Add(one, f) h = Mul(half, x) y = Mul(p, h)", ["Gelu"]),
    "gelu_spread": ("a = Div(x, root) f = Erf(a) h = Mul(x, half) q = Mul(h, f) y = Add(q, h)", ["Gelu"]),
    "gelu_tanh": (
        """c = Pow(x, three) k = Mul(c, cube) i = Add(x, k) u = Mul(i, slope) f = Tanh(u) p = Add(f, one)
        h = Mul(half, x) y = Mul(h, p)""",
        ["Gelu"],
    ),
    "gelu_tanh_factored": (
        """q = Mul(x, x) k = Mul(q, cube) i = Add(one, k) j = Mul(x, i) u = Mul(slope, j) f = Tanh(u) p = Add(f, one)
        r = Mul(p, half) y = Mul(x, r)""",
        ["Gelu"],
    ),
    "gelu_of_a_sum": (
        "z = Add(x, three) a = Div(z, root) f = Erf(a) p = Add(f, one) h = Mul(z, p) y = Mul(h, half)",
        ["Add", "Gelu"],
    ),
    "mish": ("p = Softplus(x) t = Tanh(p) y = Mul(t, x)", ["Mish"]),
    "hard_swish": ("a = Add(x, three) c = Clip(a, zero, six) p = Mul(x, c) y = Div(p, six)", ["HardSwish"]),
    "hard_swish_scaled": (
        "l = Mul(x, sixth) a = Add(l, half) c = Clip(a, zero, one) y = Mul(c, x)",
        ["HardSwish"],
    ),
    "hard_swish_of_hard_sigmoid": (
        "c = HardSigmoid <alpha = 0.16666667, beta = 0.5> (x) y = Mul(c, x)",
        ["HardSwish"],
    ),
    "hard_sigmoid": ("a = Add(x, three) c = Clip(a, zero, six) y = Div(c, six)", ["HardSigmoid"]),
    "layer_norm": (f"{VARIANCE} n = Div(d, s) m = Mul(n, g) y = Add(m, b)", ["LayerNormalization"]),
    "layer_norm_pow": (
        f"""{MEAN} sq = Pow(d, two) v = ReduceMean <axes = [2]> (sq) ve = Add(e, v) s = Pow(ve, half)
        n = Div(d, s) m = Mul(g, n) y = Add(b, m)""",
        ["LayerNormalization"],
    ),
    "layer_norm_two_differences": (
        f"""{MEAN} d2 = Sub(x, mean) sq = Pow(d2, two) v = ReduceMean <axes = [-1]> (sq) ve = Add(v, e)
        s = Sqrt(ve) n = Div(d, s) m = Mul(n, g) y = Add(m, b)""",
        ["LayerNormalization"],
    ),
    "layer_norm_reciprocal": (
        f"{VARIANCE} r = Reciprocal(s) rg = Mul(r, g) m = Mul(d, rg) y = Add(m, b)",
        ["LayerNormalization"],
    ),
    "layer_norm_bare": (f"{VARIANCE} y = Div(d, s)", ["LayerNormalization"]),
    "layer_norm_two_axes": (
        """mean = ReduceMean <axes = [1, 2]> (x) d = Sub(x, mean) sq = Mul(d, d)
        v = ReduceMean <axes = [-1, -2]> (sq) ve = Add(v, e) s = Sqrt(ve) n = Div(d, s) m = Mul(n, gc) y = Add(m, g)""",
        ["Reshape", "LayerNormalization", "Reshape"],
    ),
    "layer_norm_native_of_two_axes": (
        "r = Relu(x) n = LayerNormalization <axis = 1> (r, plane, plane) y = Abs(n)",
        ["Relu", "Reshape", "LayerNormalization", "Reshape", "Abs"],
    ),
    "layer_norm_by_moments": (
        f"{VARIANCE} r = Reciprocal(s) f = Mul(r, g) a = Mul(x, f) k = Mul(f, mean) o = Sub(b, k) y = Add(a, o)",
        ["LayerNormalization"],
    ),
    "layer_norm_of_moments": (
        """t = ReduceSum <keepdims = 0> (x, middle) q = Mul(x, x) u = ReduceSum <keepdims = 0> (q, middle)
        mean = Mul(t, sixth) mq = Mul(u, sixth) mm = Mul(mean, mean) v = Sub(mq, mm) vp = Max(zero, v)
        vr = Reshape(vp, row) ve = Add(vr, e) s = Sqrt(ve) r = Reciprocal(s) rg = Mul(r, gm) mr = Reshape(mean, row)
        d = Sub(x, mr) m = Mul(d, rg) y = Add(m, bm)""",
        ["Transpose", "LayerNormalization", "Transpose"],
    ),
    "instance_norm": (f"{VARIANCE} n = Div(d, s) m = Mul(n, gc) y = Add(m, bc)", ["InstanceNormalization"]),
    "group_norm": (
        """r = Reshape(x, groups) n = InstanceNormalization(r, ones, zeros) s = Reshape(n, same) m = Mul(s, gc)
        y = Add(m, bc)""",
        ["GroupNormalization"],
    ),
    "group_norm_of_parts": (
        """r = Reshape(x, groups) mean = ReduceMean <axes = [2]> (r) d = Sub(r, mean) sq = Mul(d, d)
        v = ReduceMean <axes = [-1]> (sq) ve = Add(v, e) s = Sqrt(ve) n = Div(d, s) t = Reshape(n, same)
        y = Mul(t, gc)""",
        ["GroupNormalization"],
    ),
    "rms_norm": (f"{SQUARES} r = Div(one, s) n = Mul(x, r) y = Mul(g, n)", ["RMSNormalization"]),
    "rms_norm_divided": (f"{SQUARES} n = Div(x, s) y = Mul(n, g)", ["RMSNormalization"]),
    "rms_norm_power": (
        """sq = Mul(x, x) v = ReduceMean <axes = [-1]> (sq) ve = Add(v, e) r = Pow(ve, minus_half) n = Mul(x, r)
        y = Mul(n, g)""",
        ["RMSNormalization"],
    ),
    "rms_norm_of_a_product": (
        """z = Mul(x, g) sq = Mul(z, z) v = ReduceMean <axes = [-1]> (sq) ve = Add(v, e) s = Sqrt(ve) r = Reciprocal(s)
        n = Mul(z, r) y = Mul(n, b)""",
        ["Mul", "RMSNormalization"],
    ),
    "rms_norm_of_a_deviation": (
        f"{MEAN} sq = Mul(d, d) v = ReduceMean <axes = [1]> (sq) ve = Add(v, e) s = Sqrt(ve) y = Div(d, s)",
        ["ReduceMean", "Sub", "Transpose", "RMSNormalization", "Transpose"],
    ),
    "softmax": (
        "t = ReduceMax <axes = [-1]> (x) d = Sub(x, t) p = Exp(d) u = ReduceSum(p, last) y = Div(p, u)",
        ["Softmax"],
    ),
    "softmax_of_flat_sums": (
        """t = ReduceMax <axes = [1], keepdims = 0> (x) t1 = Max(low, t) tr = Reshape(t1, row) d = Sub(x, tr) p = Exp(d)
        u = ReduceSum <keepdims = 0> (p, middle) ur = Reshape(u, row) y = Div(p, ur)""",
        ["Softmax"],
    ),
    "log_softmax": ("s = Softmax <axis = -1> (x) y = Log(s)", ["LogSoftmax"]),
    "powers": (
        "a = Pow(x, two) c = Pow(a, half) d = Pow(c, minus) y = Pow(d, three)",
        ["Mul", "Sqrt", "Reciprocal", "Mul", "Mul"],
    ),
    "quotients": (
        "a = Div(x, three) q = Add(a, seven) r = Div(one, q) y = Div(r, g)",
        ["Mul", "Add", "Reciprocal", "Mul"],
    ),
    "twice": ("a = Mul(x, three) c = Div(a, g) d = Add(c, half) r = Add(b, d) y = Relu(r)", ["Mul", "Add", "Relu"]),
    "bounds": ("a = Max(x, half) c = Min(one, a) d = Add(c, x) y = Max(d, zero)", ["Clip", "Clip", "Add", "Relu"]),
    "nothing": (
        """a = Mul(x, one) c = Add(zero, a) d = Min(c, infinity) f = Expand(d, ones3)
        h = Transpose <perm = [0, 1, 2]> (f) i = Reshape(h, same) j = Sub(i, zero) k = Div(j, one) y = Relu(k)""",
        ["Relu"],
    ),
    "repeated": ("t = ReduceMax <axes = [-1]> (x) u = Expand(t, same) y = Sub(x, u)", ["ReduceMax", "Sub"]),
    "gather_one": ("a = Gather <axis = 1> (x, at) y = Relu(a)", ["Slice", "Squeeze", "Relu"]),
    "gather_backwards": ("a = Gather <axis = -1> (x, backwards) y = Relu(a)", ["Slice", "Relu"]),
    "gather_shuffled": (
        "a = Gather <axis = 2> (x, shuffled) y = Relu(a)",
        ["Slice", "Slice", "Slice", "Concat", "Relu"],
    ),
    "gather_windows": (
        "a = Gather <axis = 2> (x, windows) y = Relu(a)",
        ["Slice", "Slice", "Slice", "Concat", "Reshape", "Relu"],
    ),
    "gather_from_the_end": ("a = Gather <axis = 2> (x, from_end) y = Relu(a)", ["Slice", "Relu"]),
    "scatter_front": (
        "r = Relu(x) v = Slice(r, z0, z2, z1) q = ScatterND(x, front, v) y = Abs(q)",
        ["Relu", "Slice", "Slice", "Concat", "Abs"],
    ),
    "scatter_inside": (
        "r = Relu(x) v = Slice(r, z1, z3, z2) q = ScatterND(x, inside, v) y = Abs(q)",
        ["Relu", "Slice", "Slice", "Slice", "Concat", "Abs"],
    ),
    "scatter_row": (
        "r = Relu(x) v = Slice(r, z1, z2, z0) q = ScatterND(x, second, v) y = Abs(q)",
        ["Relu", "Slice", "Slice", "Concat", "Abs"],
    ),
    "scatter_in_two_axes": (
        "r = Relu(x) v = Slice(r, z11, z23, z12) q = ScatterND(x, corner, v) y = Abs(q)",
        ["Relu", "Slice", "Slice", "Slice", "Slice", "Slice", "Concat", "Slice", "Concat", "Abs"],
    ),
    "length_of_a_vector": ("q = Mul(x, x) t = ReduceSum(q, last) y = Sqrt(t)", ["ReduceL2"]),
    "logarithm_of_a_square": ("q = Mul(x, x) y = Log(q)", ["Abs", "Log", "Mul"]),
    "logarithm_of_a_power": (
        "q = Pow(x, two) n = Add(q, e) y = Log(n)",
        ["Unsqueeze", "Concat", "ReduceL2", "Log", "Mul"],
    ),
    "length_of_two": (
        "r = Neg(x) q = Mul(x, x) p = Pow(r, two) t = Add(q, p) n = Add(t, negligible) y = Sqrt(n)",
        ["Neg", "Unsqueeze", "Unsqueeze", "Concat", "ReduceL2"],
    ),
    "guard": (
        "c = Less(x, zero) k = Where(c, zero, large) z = Add(x, k) s = Softmax(z) n = IsNaN(s) y = Where(n, zero, s)",
        ["Less", "Where", "Add", "Softmax"],
    ),
    "guard_of_infinite_masks": (
        """c = Less(zero, x) k = Where(c, zero, low) u = Unsqueeze(k, z0) r = Squeeze(u, z0) z = Add(x, r)
        s = Softmax(z) n = IsNaN(s) y = Where(n, zero, s)""",
        ["Less", "Where", "Unsqueeze", "Squeeze", "Add", "Softmax"],
    ),
    "mean_of_a_sum": ("t = ReduceSum(x, last) u = Mul(eighth, t) y = Sub(x, u)", ["ReduceMean", "Sub"]),
}  # fmt: skip
LEFT: dict[str, str] = {
    "gelu_of_another_root": "a = Div(x, other_root) f = Erf(a) p = Add(f, one) h = Mul(x, p) y = Mul(h, half)",
    "gelu_of_two_values": "z = Relu(x) a = Div(x, root) f = Erf(a) p = Add(f, one) h = Mul(z, p) y = Mul(h, half)",
    "gelu_of_another_cube": """c = Pow(x, three) k = Mul(c, other_cube) i = Add(x, k) u = Mul(i, slope) f = Tanh(u)
        p = Add(f, one) h = Mul(half, x) y = Mul(h, p)""",
    "mish_of_two_values": "z = Relu(x) p = Softplus(x) t = Tanh(p) y = Mul(z, t)",
    "hard_swish_up_to_seven": "a = Add(x, three) c = Clip(a, zero, seven) p = Mul(x, c) y = Div(p, six)",
    "hard_swish_of_another_slope": "a = Add(x, three) c = Clip(a, zero, six) p = Mul(x, c) y = Mul(p, sixth_of_six)",
    "hard_sigmoid_from_one": "a = Add(x, three) c = Clip(a, one, six) y = Div(c, six)",
    "layer_norm_of_another_deviation": f"""{VARIANCE} z = Relu(x) m2 = ReduceMean <axes = [-1]> (z) d2 = Sub(z, m2)
        y = Div(d2, s)""",
    "layer_norm_without_epsilon_and_root": f"""{MEAN} sq = Mul(d, d) v = ReduceMean <axes = [-1]> (sq) ve = Add(v, e)
        y = Div(d, ve)""",
    "layer_norm_of_another_mean_square": """q = Mul(x, x) mean = ReduceMean <axes = [-1]> (x)
        mq = ReduceMean <axes = [1, 2]> (q) mm = Mul(mean, mean) v = Sub(mq, mm) ve = Add(v, one) s = Sqrt(ve)
        d = Sub(x, mean) y = Div(d, s)""",
    "layer_norm_by_other_moments": f"""{VARIANCE} r = Reciprocal(s) f = Mul(r, g) a = Mul(x, f)
        m2 = ReduceMean <axes = [1, 2]> (x) k = Mul(m2, f) o = Sub(b, k) y = Add(a, o)""",
    "layer_norm_by_another_factor": f"""{VARIANCE} r = Reciprocal(s) f = Mul(r, g) a = Mul(x, f)
        k = Mul(mean, r) o = Sub(b, k) y = Add(a, o)""",
    "rms_norm_of_another_value": f"{SQUARES} z = Relu(x) y = Div(z, s)",
    "rms_norm_multiplied": f"{SQUARES} y = Mul(x, s)",
    "group_norm_with_scales_inside": """r = Reshape(x, groups) n = InstanceNormalization(r, twos, zeros)
        s = Reshape(n, same) m = Mul(s, gc) y = Add(m, bc)""",
    "group_norm_across_samples": """r = Reshape(x, rows_as_groups) n = InstanceNormalization(r, ones, zeros)
        s = Reshape(n, same) m = Mul(s, gc) y = Add(m, bc)""",
    "group_norm_scaled_by_place": """r = Reshape(x, groups) n = InstanceNormalization(r, ones, zeros)
        s = Reshape(n, same) m = Mul(s, g) y = Add(m, bc)""",
    "softmax_of_two_axes": """t = ReduceMax <axes = [1, 2]> (x) d = Sub(x, t) p = Exp(d)
        ax = Constant <value_ints = [1, 2]> () u = ReduceSum(p, ax) y = Div(p, u)""",
    "softmax_of_another_sum": "p = Exp(x) z = Relu(p) u = ReduceSum(z, last) y = Div(p, u)",
    "power_of_seven": "z = Relu(x) y = Pow(z, seven)",
    "quotient_by_zero": "y = Div(x, zero)",
    "widened": "t = ReduceMax <axes = [-1]> (x) u = Expand(t, same) y = Relu(u)",
    "gather_scattered": "a = Gather <axis = 1> (x, scattered) y = Relu(a)",
    "gather_of_a_constant": "a = Gather(g, number) y = Mul(x, a)",
    "scatter_of_no_block": "r = Relu(x) v = Slice(r, z0, z2, z1) q = ScatterND(x, no_block, v) y = Abs(q)",
    "scatter_added": """r = Relu(x) v = Slice(r, z0, z2, z1) q = ScatterND <reduction = "add"> (x, front, v)
        y = Abs(q)""",
    "length_with_an_addend": "q = Mul(x, x) t = ReduceSum(q, last) n = Add(t, e) y = Sqrt(n)",
    "infinite_numbers_that_are_no_mask": "c = Less(x, zero) k = Where(c, x, low) y = Exp(k)",
    "infinite_mask_that_is_read_elsewhere": """c = Less(x, zero) k = Where(c, zero, low) z = Add(x, k) s = Softmax(z)
        t = Exp(k) y = Mul(s, t)""",
    "guard_of_another_value": "s = Softmax(x) r = Relu(s) n = IsNaN(r) y = Where(n, zero, s)",
    "sum_over_another_count": "t = ReduceSum(x, last) u = Mul(sixth, t) y = Sub(x, u)",
}  # fmt: skip


LEFT_AS_THEY_ARE = (
    *("power_of_seven", "quotient_by_zero", "widened", "sum_over_another_count", "length_with_an_addend"),
    *("gather_scattered", "scatter_of_no_block", "scatter_added"),
    *("infinite_numbers_that_are_no_mask", "infinite_mask_that_is_read_elsewhere", "guard_of_another_value"),
)


def types_of(made: Any) -> list[str]:
    return [node.op_type for node in made.graph]


def compare(proto: onnx.ModelProto, imported: Any) -> None:
    feeds = {"x": np.random.default_rng(7).normal(0, 2, (2, 6, 8)).astype(np.float32)}
    for exact, found in zip(outputs(proto, feeds), outputs(imported, feeds), strict=True):
        assert exact.shape == found.shape
        assert np.allclose(exact, found, rtol=FLOAT_NOISE, atol=FLOAT_NOISE * np.abs(exact).max(), equal_nan=True)


@pytest.mark.parametrize("name", JOINED)
def test_parts_are_joined(name: str) -> None:
    body, expected = JOINED[name]
    proto = model(body)
    imported = import_model(proto)
    assert types_of(imported.model) == expected
    compare(proto, imported.model)


@pytest.mark.parametrize("name", LEFT)
def test_what_only_looks_like_it_stays(name: str) -> None:
    proto = model(LEFT[name])
    imported = import_model(proto).model
    joined = {
        "Gelu",
        "HardSwish",
        "HardSigmoid",
        "LayerNormalization",
        "RMSNormalization",
        "GroupNormalization",
        "Softmax",
    }
    assert not joined & (set(types_of(imported)) - {node.op_type for node in proto.graph.node})
    if name in LEFT_AS_THEY_ARE:
        assert types_of(imported) == [node.op_type for node in proto.graph.node]
    compare(proto, imported)


@pytest.mark.parametrize("name", JOINED)
def test_a_second_run_finds_nothing(name: str) -> None:
    made, _ = read_model(model(JOINED[name][0]))
    name_nodes(made)
    lift_constants(made)
    infer_shapes(made)
    assert join_parts(made) > 0
    assert join_parts(made) == 0


def test_origin_names_every_part() -> None:
    proto = model(JOINED["layer_norm_of_moments"][0])
    for index, node in enumerate(proto.graph.node):
        node.name = f"n{index}_{node.op_type}"
    imported = import_model(proto)
    (norm,) = (node for node in imported.model.graph if node.op_type == "LayerNormalization")
    assert set(imported.origin[str(norm.name)]) == {node.name for node in proto.graph.node}


def test_a_part_that_is_read_elsewhere_stays() -> None:
    proto = model(f"{VARIANCE} n = Div(d, s) y = Mul(n, g)", "float[2,6,8] y, float[2,6,8] d")
    imported = import_model(proto).model
    assert sorted(types_of(imported)) == ["LayerNormalization", "ReduceMean", "Sub"]
    compare(proto, imported)


def test_opset_is_raised_where_it_must() -> None:
    body = f"{JOINED['rms_norm'][0]} sp1, sp2 = Split <axis = 1> (y) t = ReduceMax <axes = [0], keepdims = 0> (sp1)"
    proto = model(body, "float[6,8] z")
    proto.graph.output[0].name = "t"
    proto.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 3
    imported = import_model(proto).model
    assert imported.graph.opset_imports[""] == 23
    assert types_of(imported) == ["RMSNormalization", "Split", "ReduceMax"]
    onnx.checker.check_model(ir.to_proto(imported), full_check=True)
    compare(proto, imported)


def test_an_op_that_cannot_be_raised_keeps_the_parts() -> None:
    proto = model(
        "i = Unsqueeze(x, last) z = DFT <axis = 1> (i) " + JOINED["gelu"][0], "float[2,6,8] y, float[2,6,8,2] z"
    )
    imported = import_model(proto).model
    assert imported.graph.opset_imports[""] == 17
    assert "Erf" in types_of(imported)
