"""Masks set no range: what only a Softmax sees is bounded by what it can tell apart."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hexqdq.errors import CalibrationError
from hexqdq.import_.pipeline import import_model
from hexqdq.qtypes import QType
from hexqdq.quantize.calibration.visible import INVISIBLE, INVISIBLE_WIDE
from hexqdq.quantize.pipeline import quantize
from hexqdq.quantize.product import QdqModel
from hexqdq.quantize.recipe import Recipe
from tests.import_.models import outputs, parse

Array = NDArray[Any]
HEADS, LENGTH, WIDTH = 2, 8, 16
PLAIN = Recipe(method="minmax", bias_correct=False, smooth=False, mixed=False)
CAUSAL = np.where(np.tril(np.ones((LENGTH, LENGTH))) > 0, 0, -1e4).astype(np.float32)
CONSTANTS: dict[str, Array] = {
    "causal": CAUSAL,
    "low": np.array(-3.4028235e38, np.float32),
    "hard": np.where(CAUSAL < 0, -np.inf, 0).astype(np.float32),
    "nothing": np.array(-np.inf, np.float32),
    "zero": np.array(0, np.float32),
    "one": np.array(1, np.float32),
    "large": np.array(-1e4, np.float32),
    "slopes": (0.5 * (np.arange(LENGTH)[None, :] - np.arange(LENGTH)[:, None])).astype(np.float32),
    "seen": np.array([1, 1, 1, LENGTH], np.int64),
}
SHAPE = f"1,{HEADS},{LENGTH}"
QKV = f"float[{SHAPE},{WIDTH}] q, float[1,{HEADS},{WIDTH},{LENGTH}] k, float[{SHAPE},{WIDTH}] v"
INFINITE = {
    "infinite constant": f"({QKV}) => (float[{SHAPE},{WIDTH}] y) {{ s = MatMul(q, k) z = Add(s, hard) ",
    "infinite chosen": f"""({QKV}, bool[1,{LENGTH}] m) => (float[{SHAPE},{WIDTH}] y) {{ s = MatMul(q, k)
        w = Where(m, zero, nothing) r = Reshape(w, seen) z = Add(s, r) """,
    "infinite over scores": f"""({QKV}, bool[1,1,1,{LENGTH}] m) => (float[{SHAPE},{WIDTH}] y) {{ s = MatMul(q, k)
        z = Where(m, s, nothing) """,
    "twice": f"""({QKV}, bool[1,1,1,{LENGTH}] m) => (float[{SHAPE},{WIDTH}] y) {{ s = MatMul(q, k)
        w = Where(m, zero, low) d = Add(w, hard) z = Add(s, d) """,
}
GRAPHS = INFINITE | {
    "constant": f"({QKV}) => (float[{SHAPE},{WIDTH}] y) {{ s = MatMul(q, k) z = Add(s, causal) ",
    "constant_first": f"({QKV}) => (float[{SHAPE},{WIDTH}] y) {{ s = MatMul(q, k) z = Add(causal, s) ",
    "chosen": f"""({QKV}, bool[1,{LENGTH}] m) => (float[{SHAPE},{WIDTH}] y) {{ s = MatMul(q, k)
        w = Where(m, zero, low) r = Reshape(w, seen) z = Add(s, r) """,
    "computed": f"""({QKV}, float[1,1,1,{LENGTH}] m) => (float[{SHAPE},{WIDTH}] y) {{ s = MatMul(q, k)
        h = Sub(one, m) r = Mul(h, large) z = Add(s, r) """,
    "given": f"""({QKV}, float[1,1,1,{LENGTH}] f) => (float[{SHAPE},{WIDTH}] y) {{ s = MatMul(q, k) z = Add(s, f) """,
    "none": f"({QKV}) => (float[{SHAPE},{WIDTH}] y) {{ z = MatMul(q, k) ",
    "slopes": f"({QKV}) => (float[{SHAPE},{WIDTH}] y) {{ s = MatMul(q, k) z = Add(s, slopes) ",
}
TAIL = "p = Softmax(z) y = MatMul(p, v) }"


def model(name: str, tail: str = TAIL) -> Any:
    body = GRAPHS[name] + tail
    return parse(f"m {body}", 17, **{key: value for key, value in CONSTANTS.items() if key in body})


def sample(proto: Any, seed: int) -> dict[str, Array]:
    generator = np.random.default_rng(seed)
    made: dict[str, Array] = {}
    for value in proto.graph.input:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        keeps = np.arange(LENGTH) <= generator.integers(2, LENGTH)
        match value.name:
            case "m" if value.type.tensor_type.elem_type == 9:
                made["m"] = np.broadcast_to(keeps, shape)
            case "m":
                made["m"] = np.broadcast_to(keeps, shape).astype(np.float32)
            case "f":
                made["f"] = np.where(np.broadcast_to(keeps, shape), 0, -1e9).astype(np.float32)
            case _:
                made[value.name] = generator.normal(size=shape).astype(np.float32)
    return made


def quantized(name: str, tail: str = TAIL, recipe: Recipe = PLAIN) -> QdqModel:
    proto = model(name, tail)
    return quantize(import_model(proto), [sample(proto, seed) for seed in range(16)], recipe)


def lowest_row(name: str) -> float:
    """The smallest maximum of a row of logits over the samples."""
    proto = model(name, "y = Relu(z) }")
    proto.graph.node[-1].op_type = "Identity"
    return min(float(outputs(proto, sample(proto, seed))[0].max(axis=-1).min()) for seed in range(16))


@pytest.mark.parametrize("name", GRAPHS)
def test_logits_reach_as_far_down_as_a_softmax_sees(name: str) -> None:
    low, high = quantized(name).ranges["z"]
    bound = lowest_row(name) - math.log(LENGTH / INVISIBLE)
    assert low == pytest.approx(bound, rel=1e-5) or low > bound
    assert high < 40


@pytest.mark.parametrize("name", ["chosen", "computed", "given", "infinite chosen", "twice"])
def test_a_mask_reaches_as_far_as_it_must(name: str) -> None:
    ranges = quantized(name).ranges
    mask = {"chosen": "w", "computed": "r", "given": "f", "infinite chosen": "w", "twice": "d"}[name]
    (low, high), scores, logits = ranges[mask], ranges["s"], ranges["z"]
    assert high == 0
    assert low == pytest.approx(logits[0] - scores[1], rel=1e-4)


@pytest.mark.parametrize("name", ["constant", "constant_first", "infinite constant"])
def test_a_constant_mask_reaches_as_far_as_it_must(name: str) -> None:
    qdq = quantized(name)
    held = {str(v.name): v.const_value.numpy() for v in qdq.model.graph.initializers.values() if v.const_value}
    (stem,) = (key.removesuffix("_quantized") for key in held if "_input" in key and key.endswith("_quantized"))
    scale, zero_point = held[f"{stem}_scale"], held[f"{stem}_zero_point"]
    values = (held[f"{stem}_quantized"].astype(np.float64) - zero_point) * scale
    assert -80 < values.min() < qdq.ranges["z"][0] and values.max() == 0
    assert ((values < -1) == (CAUSAL < 0)).all()


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("activations", [QType.U8, QType.S8, QType.U16])
def test_numbers_stay_near(name: str, activations: QType) -> None:
    recipe = Recipe(method="minmax", bias_correct=False, smooth=False, mixed=False, activations=activations)
    proto, qdq = model(name), quantized(name, recipe=recipe)
    assert qdq.decisions == ()
    errors = []
    for seed in range(8):
        feeds = sample(proto, seed)
        (exact,), (found,) = outputs(proto, feeds), outputs(qdq.model, feeds)
        errors.append(np.abs(exact - found).mean() / np.abs(exact).mean())
    assert max(errors) < (0.005 if activations is QType.U16 else 0.1)


def test_scores_that_a_mask_hides_set_no_range() -> None:
    """The hidden half of every row is a hundred times as large."""
    proto = model("constant")
    feeds = []
    for seed in range(8):
        made = sample(proto, seed)
        made["k"][..., LENGTH - 1] *= 100  # seen by the last row only
        made["q"][:, :, LENGTH - 1] /= 100
        feeds.append(made)
    qdq = quantize(import_model(proto), feeds, PLAIN)
    assert qdq.ranges["s"][1] < 40 and qdq.ranges["s"][0] > -80


@pytest.mark.parametrize(
    "tail",
    [
        "p = Softmax(z) t = MatMul(p, v) u = ReduceMax(z) y = Add(t, u) }",
        "r = Relu(z) p = Softmax(z) t = MatMul(p, v) n = MatMul(r, v) y = Add(t, n) }",
    ],
)
def test_logits_that_something_else_reads_keep_their_range(tail: str) -> None:
    assert quantized("constant", tail).ranges["z"][0] < -9000


@pytest.mark.parametrize("name", INFINITE)
def test_infinity_that_something_else_reads_is_told(name: str) -> None:
    tail = "p = Softmax(z) t = MatMul(p, v) u = Exp(z) n = MatMul(u, v) y = Add(t, n) }"
    with pytest.raises(CalibrationError, match="holds infinity in calibration sample 0"):
        quantized(name, tail)


def test_a_mask_of_a_mask_reaches_as_far_as_it_must() -> None:
    ranges = quantized("twice").ranges
    low, high = ranges["w"]
    assert low == pytest.approx(ranges["d"][0])
    assert high == 0


def test_sixteen_bits_reach_further_than_eight() -> None:
    qdq = quantized("constant")
    assert qdq.ranges["z"][0] - qdq.wide_ranges["z"][0] == pytest.approx(math.log(INVISIBLE / INVISIBLE_WIDE))


def test_rows_that_are_masked_whole_do_not_count() -> None:
    proto = model("given")
    feeds = [sample(proto, seed) for seed in range(4)]
    feeds[2]["f"][:] = -1e9
    low, high = quantize(import_model(proto), feeds, PLAIN).ranges["z"]
    assert -40 < low < high < 40


def test_given_ranges_stand() -> None:
    proto = model("constant")
    known = dict.fromkeys(quantized("constant").ranges, (-9.0, 9.0))
    qdq = quantize(import_model(proto), [sample(proto, 0)], PLAIN, ranges=known)
    assert set(qdq.ranges.values()) == {(-9.0, 9.0)}
