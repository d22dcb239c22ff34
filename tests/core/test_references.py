"""The integer references against exact real arithmetic: the error bounds that the ops state."""

from __future__ import annotations

import numpy as np
import pytest

from hexqdq.errors import RescaleError
from hexqdq.ops import OPS
from hexqdq.ops.unit import Array, Attribute, Clamp, QuantUnit, Tensor
from hexqdq.qtypes import QType, QuantParams
from hexqdq.target import DEFAULT_TARGET, find_target

TARGET = find_target(DEFAULT_TARGET)


def tensor(name: str, shape: tuple[int, ...], dtype: QType, scale: float, zero_point: int = 0) -> Tensor:
    return Tensor(name, shape, dtype, QuantParams.per_tensor(dtype, scale, zero_point))


def reals(values: Array, of: Tensor) -> Array:
    assert of.params is not None
    return np.asarray((values.astype(np.float64) - of.params.zero_point[0]) * of.params.scale[0])


def worst_steps(result: Array, exact: Array, out: Tensor) -> float:
    """Distance to the exact real value in output steps, saturation allowed for."""
    assert out.params is not None
    ideal = exact / out.params.scale[0] + out.params.zero_point[0]
    return float(np.max(np.abs(result - np.clip(ideal, out.dtype.low, out.dtype.high))))


@pytest.mark.parametrize("length", [1, 2, 10, 1000, 6625])
@pytest.mark.parametrize("scale", [0.001, 0.05, 0.5])
def test_softmax_is_within_one_step(length: int, scale: float) -> None:
    x = tensor("x", (50, length), QType.S8, scale, 3)
    y = tensor("y", (50, length), QType.U8, 1 / 256, 0)
    unit = QuantUnit("softmax", "Softmax", (x,), (y,), {"axis": -1})
    values = np.random.default_rng(length).integers(-128, 128, x.shape).astype(np.int8)
    real = reals(values, x)
    exact = np.exp(real - real.max(-1, keepdims=True))
    exact /= exact.sum(-1, keepdims=True)
    (result,) = OPS["Softmax"].reference(unit, [values])
    assert worst_steps(result, exact, y) <= 1.0


def test_add_is_within_one_step_for_every_pair_of_values() -> None:
    a, b = tensor("a", (256, 1), QType.U8, 0.031, 7), tensor("b", (1, 256), QType.U8, 0.0007, 250)
    y = tensor("y", (256, 256), QType.U8, 0.02, 11)
    unit = QuantUnit("add", "Add", (a, b), (y,))
    grid = np.arange(256, dtype=np.uint8)
    feeds = [grid.reshape(256, 1), grid.reshape(1, 256)]
    (result,) = OPS["Add"].reference(unit, feeds)
    assert worst_steps(result, reals(feeds[0], a) + reals(feeds[1], b), y) <= 1.0


def test_add_whose_scales_lose_an_operand_is_refused() -> None:
    a, b = tensor("a", (4,), QType.U8, 1000.0), tensor("b", (4,), QType.U8, 0.01)
    unit = QuantUnit("add", "Add", (a, b), (tensor("y", (4,), QType.U8, 0.01),))
    with pytest.raises(RescaleError, match="error of"):
        OPS["Add"].check(unit)


def conv_unit(group: int = 1, **attributes: Attribute) -> QuantUnit:
    rng = np.random.default_rng(5)
    x = tensor("x", (2, 4, 7, 6), QType.U8, 0.02, 100)
    weights = rng.integers(-127, 128, (8, 4 // group, 3, 3)).astype(np.int8)
    scales = rng.uniform(0.001, 0.01, 8).astype(np.float32)
    w = Tensor("w", weights.shape, QType.S8, QuantParams.per_channel(QType.S8, scales, np.zeros(8, int), 0))
    bias = rng.integers(-2000, 2000, 8).astype(np.int32)
    product = QuantParams.per_channel(QType.S32, scales * np.float32(0.02), np.zeros(8, int), 0)
    b = Tensor("b", (8,), QType.S32, product)
    y = tensor("y", (2, 8, 7, 6), QType.U8, 0.05, 90)
    defaults: dict[str, Attribute] = {"pads": (1, 1, 1, 1), "strides": (1, 1), "group": group}
    return QuantUnit("conv", "Conv", (x, w, b), (y,), defaults | attributes, {"w": weights, "b": bias}, Clamp(0.0, 6.0))


@pytest.mark.parametrize("group", [1, 2, 4])
def test_conv_is_within_one_step_of_real_arithmetic(group: int) -> None:
    unit = conv_unit(group)
    x = unit.input(0)
    values = np.random.default_rng(1).integers(0, 256, x.shape).astype(np.uint8)
    w, b = unit.input(1).params, unit.input(2).params
    assert w is not None and b is not None
    weights = unit.constant(1).astype(np.float64) * np.array(w.scale)[:, None, None, None]
    padded = np.pad(reals(values, x), ((0, 0), (0, 0), (1, 1), (1, 1)))
    exact = np.zeros(unit.output.shape)
    per_group = 8 // group
    for channel in range(8):
        first = channel // per_group * (4 // group)
        for i in range(3):
            for j in range(3):
                part = padded[:, first : first + 4 // group, i : i + 7, j : j + 6]
                exact[:, channel] += np.einsum("nchw,c->nhw", part, weights[channel, :, i, j])
    exact += (unit.constant(2) * np.array(b.scale))[:, None, None]
    (result,) = OPS["Conv"].reference(unit, [values])
    assert worst_steps(result, np.clip(exact, 0.0, 6.0), unit.output) <= 1.0


@pytest.mark.parametrize(
    ("unit", "sentence"),
    [
        (conv_unit(pads=(1, 1, -1, 1)), "pads must not be negative"),
        (conv_unit(auto_pad="SAME_UPPER"), "pads must be given"),
    ],
)
def test_refusals_carry_their_sentence(unit: QuantUnit, sentence: str) -> None:
    refusal = OPS["Conv"].refusal(unit, TARGET)
    assert refusal is not None and sentence in refusal and "found" in refusal


def test_accepted_unit_has_no_refusal() -> None:
    assert OPS["Conv"].refusal(conv_unit(), TARGET) is None


def test_unit_survives_json() -> None:
    unit = conv_unit(strides=(2, 2))
    again = QuantUnit.from_json(unit.to_json(), unit.constants)
    assert again.to_json() == unit.to_json()
    assert again.attributes["strides"] == (2, 2) and again.clamp == Clamp(0.0, 6.0)
