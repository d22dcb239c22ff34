"""Models whose nodes hold graphs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import numpy_helper

from tests.import_.models import parse
from tests.quantize.graphs import CONSTANTS, normal

HELD = {**CONSTANTS, "turns": np.array(3, np.int64), "yes": np.array(True), "square": normal(4, 4, seed=9, scale=0.4)}

CHOOSES = {
    "captured": """m (float[1,3,4,4] x, bool c) => (float[1,4,2,2] y, float[1,4,2,2] r) {
        h = Conv(x, w, b)
        r = Relu(h)
        y = If (c) <
            then_branch = t () => (float[1,4,2,2] a) { a = Mul(h, h) },
            else_branch = e () => (float[1,4,2,2] b2) { b2 = Add(r, h) }>
    }""",
    "read inside alone": """m (float[1,3,4,4] x, bool c) => (float[1,4,2,2] y) {
        h = Conv(x, w, b)
        y = If (c) <
            then_branch = t () => (float[1,4,2,2] a) { a = Relu(h) },
            else_branch = e () => (float[1,4,2,2] b2) { k = Constant<value = float {2.0}>() b2 = Expand(k, cube2) }>
    }""",
    "names of the writer": """m (float[2,4] x, bool c) => (float[2,5] y, float[2,5] r) {
        h = MatMul(x, wm)
        r = Relu(h)
        y = If (c) <
            then_branch = t () => (float[2,5] a) { r_quantized = Neg(r) a = Add(r_quantized, r) },
            else_branch = e () => (float[2,5] b2) {
                r_float = Neg(r)
                r_dequantized = Exp(r)
                b2 = Mul(r_dequantized, r_float)
            }>
    }""",
    "bias inside": """m (float[2,4] x, bool c) => (float[2,5] y) {
        h = MatMul(x, wm)
        y = If (c) <
            then_branch = t () => (float[2,5] a) { a = Add(h, bm) },
            else_branch = e () => (float[2,5] b2) { k = Neg(bm) b2 = Expand(k, rows) }>
    }""",
    "an If in an If": """m (float[2,4] x, bool c) => (float[2,5] y) {
        h = MatMul(x, wm)
        k = Relu(h)
        y = If (c) <
            then_branch = t () => (float[2,5] a) {
                n = Not(c)
                a = If (n) <
                    then_branch = tt () => (float[2,5] d) { d = Neg(k) },
                    else_branch = te () => (float[2,5] f) { f = Add(k, h) }>
            },
            else_branch = e () => (float[2,5] b2) { b2 = Mul(k, k) }>
    }""",
}
LOOPS = {
    "loop": """m (float[2,4] x) => (float[K,L] z, float[P,Q,R] all) {
        h = Relu(x)
        y, made = Loop (turns, , h) <body = b (int64 i, bool c, float[] s) => (bool c2, float[] s2, float[] o) {
            c2 = Identity(c)
            q = MatMul(s, square)
            s2 = Add(q, h)
            o = Neg(s2)
        }>
        z = MatMul(y, wm)
        all = Relu(made)
    }""",
    "scan": """m (float[2,4] x) => (float[4] y, float[2,4] z) {
        h = Sigmoid(x)
        start = Constant<value = float[4] {0, 0, 0, 0}>()
        y, ys = Scan <num_scan_inputs = 1, body = b (float[4] s, float[4] v) => (float[4] s2, float[4] o) {
            s2 = Add(s, v)
            o = Identity(s2)
        }> (start, h)
        z = MatMul(ys, square)
    }""",
}
HELD |= {"cube2": np.array([1, 4, 2, 2], np.int64), "rows": np.array([2, 5], np.int64)}


def held(text: str) -> onnx.ModelProto:
    """A model from text, in which the constants that it or its inner graphs read are there by name."""
    made = parse(text)
    used = set(_read(made.graph)) & set(HELD)
    made.graph.initializer.extend(numpy_helper.from_array(HELD[name], name) for name in sorted(used))
    return made


def _read(graph: onnx.GraphProto) -> Iterator[str]:
    for node in graph.node:
        yield from node.input
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _read(attribute.g)
