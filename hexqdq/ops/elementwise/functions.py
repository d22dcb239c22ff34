"""Real functions on exact rationals: what tables are made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np

from hexqdq import numerics
from hexqdq.ops.unit import Attribute

Attributes = Mapping[str, Attribute]
Function = Callable[..., Fraction]
"""Of one or more rationals."""

_ONE, _ZERO = Fraction(1), Fraction(0)
_LINEAR_TANH = Fraction(1, 10**12)
"""Below it tanh(x) is x to 24 digits."""


def sigmoid(x: Fraction) -> Fraction:
    return _ONE / (1 + numerics.exp(-x))


def tanh(x: Fraction) -> Fraction:
    """``(e^2x - 1) / (e^2x + 1)``."""
    if abs(x) < _LINEAR_TANH:
        return x
    power = numerics.exp(2 * x)
    return (power - 1) / (power + 1)


def hard_sigmoid(x: Fraction, alpha: Fraction, beta: Fraction) -> Fraction:
    return min(max(alpha * x + beta, _ZERO), _ONE)


def hard_swish(x: Fraction) -> Fraction:
    """``x * hard_sigmoid(x, 1/6, 1/2)``."""
    return x * hard_sigmoid(x, Fraction(1, 6), Fraction(1, 2))


def leaky_relu(x: Fraction, alpha: Fraction) -> Fraction:
    return x if x >= 0 else alpha * x


def clip(x: Fraction, low: Fraction | None = None, high: Fraction | None = None) -> Fraction:
    raised = x if low is None else max(x, low)
    return raised if high is None else min(raised, high)


def number(attributes: Attributes, name: str, default: float) -> Fraction:
    """A float attribute, exactly: ONNX stores float32."""
    value = attributes.get(name, default)
    assert isinstance(value, int | float)
    return Fraction(float(np.float32(value)))


def _hard_sigmoid(attributes: Attributes) -> Function:
    alpha, beta = number(attributes, "alpha", 0.2), number(attributes, "beta", 0.5)
    return lambda x: hard_sigmoid(x, alpha, beta)


def _leaky_relu(attributes: Attributes) -> Function:
    alpha = number(attributes, "alpha", 0.01)
    return lambda x: leaky_relu(x, alpha)


UNARY: Mapping[str, Callable[[Attributes], Function]] = {
    "Sigmoid": lambda attributes: sigmoid,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": lambda attributes: hard_swish,
    "Tanh": lambda attributes: tanh,
    "LeakyRelu": _leaky_relu,
    "Exp": lambda attributes: numerics.exp,
    "Abs": lambda attributes: abs,
    "Neg": lambda attributes: lambda x: -x,
}
"""Functions of one input that have a row of their own, by the op's attributes."""

ALL: Mapping[str, Callable[[Attributes], Function]] = {
    **UNARY,
    "Relu": lambda attributes: lambda x: max(x, _ZERO),
    "Clip": lambda attributes: clip,
    "Add": lambda attributes: lambda a, b: a + b,
    "Sub": lambda attributes: lambda a, b: a - b,
    "Mul": lambda attributes: lambda a, b: a * b,
    "Div": lambda attributes: lambda a, b: a / b,
    "Min": lambda attributes: lambda *values: min(values),
    "Max": lambda attributes: lambda *values: max(values),
    "PRelu": lambda attributes: leaky_relu,
}
"""Every function that a chain may hold."""
