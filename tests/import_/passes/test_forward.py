"""Scales and shifts before convolutions end up in their weights and biases; the numbers stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hexqdq.import_.passes.forward import fold_forward
from hexqdq.import_.pipeline import import_model
from tests.import_.models import outputs, parse

Array = NDArray[Any]


def normal(*shape: int, seed: int) -> Array:
    return np.random.default_rng(seed).normal(0.5, 1, shape).astype(np.float32)


CONSTANTS: dict[str, Array] = {
    "w": normal(6, 4, 3, 3, seed=1),
    "grouped": normal(6, 2, 3, 3, seed=2),
    "b": normal(6, seed=3),
    "a": np.array(0.3, np.float32),
    "s": np.array([0.7], np.float32),
    "channels": normal(4, 1, 1, seed=4),
    "shifts": normal(1, 4, 1, 1, seed=5),
    "zeros": np.array([1, 0, 2, 3], np.float32).reshape(4, 1, 1),
    "tiny": np.array(1e-6, np.float32),
    "place": normal(5, seed=6),
}
FOLDED = {
    "scale": ("m = Mul(r, a) y = Conv <pads = [1, 1, 1, 1]> (m, w, b)", ["Conv"]),
    "scale_per_channel": ("m = Mul(channels, r) y = Conv(m, w)", ["Conv"]),
    "scale_per_channel_of_groups": ("m = Mul(r, channels) y = Conv <group = 2> (m, grouped, b)", ["Conv"]),
    "shift": ("m = Add(r, shifts) y = Conv(m, w, b)", ["Conv"]),
    "shift_without_bias": ("m = Add(s, r) y = Conv <group = 2> (m, grouped)", ["Conv"]),
    "scale_and_shift": ("m = Mul(r, channels) q = Add(m, shifts) y = Conv(q, w, b)", ["Conv"]),
    "before_padding": ("m = Mul(r, a) q = Add(m, s) y = Conv <pads = [1, 1, 1, 1]> (q, w, b)", ["Add", "Conv"]),
    "before_padding_per_channel": (
        "m = Mul(r, channels) q = Add(shifts, m) y = Conv <pads = [1, 0, 1, 0]> (q, w, b)",
        ["Add", "Conv"],
    ),
    "two_readers": ("m = Mul(r, a) c = Conv(m, w, b) d = Conv(m, w) y = Sub(c, d)", ["Conv", "Conv", "Sub"]),
    "shift_before_padding": ("m = Add(r, s) y = Conv <pads = [1, 1, 1, 1]> (m, w)", ["Add", "Conv"]),
    "shift_read_with_and_without_padding": (
        """m = Add(r, s) c = Conv(m, w) d = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (m, w)
        e = ReduceMax <axes = [2, 3]> (d) y = Sub(c, e)""",
        ["Add", "Conv", "Conv", "ReduceMax", "Sub"],
    ),
    "read_elsewhere": (
        "m = Mul(r, a) c = Conv(m, w) t = ReduceMax(m) y = Sub(c, t)",
        ["Mul", "Conv", "ReduceMax", "Sub"],
    ),
    "scale_of_zero": (
        "m = Mul(r, zeros) q = Add(m, s) y = Conv <pads = [1, 1, 1, 1]> (q, w, b)",
        ["Mul", "Add", "Conv"],
    ),
    "tiny_scale": ("m = Mul(r, tiny) q = Add(m, s) y = Conv <pads = [1, 1, 1, 1]> (q, w)", ["Mul", "Add", "Conv"]),
    "by_place": ("m = Mul(r, place) y = Conv(m, w)", ["Mul", "Conv"]),
}  # fmt: skip


def model(name: str) -> Any:
    used = {key: value for key, value in CONSTANTS.items() if key in FOLDED[name][0]}
    return parse(f"m (float[2,4,5,5] x) => (float y) {{ r = Relu(x) {FOLDED[name][0]} }}", 17, **used)


@pytest.mark.parametrize("name", FOLDED)
def test_numbers_stay(name: str) -> None:
    proto = model(name)
    imported = import_model(proto).model
    assert [node.op_type for node in imported.graph] == ["Relu", *FOLDED[name][1]]
    feeds = {"x": normal(2, 4, 5, 5, seed=9)}
    (exact,), (found,) = outputs(proto, feeds), outputs(imported, feeds)
    assert np.abs(exact - found).max() <= 2e-6 * np.abs(exact).max()


@pytest.mark.parametrize("name", FOLDED)
def test_a_second_run_finds_nothing(name: str) -> None:
    assert fold_forward(import_model(model(name)).model) == 0
