"""A chain of real functions of one input as a small program with a JSON text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from hexqdq.ops.elementwise.functions import ALL
from hexqdq.ops.unit import Attribute

INPUT = -1
"""The operand that stands for the chain's input."""


@dataclass(frozen=True)
class Step:
    """One op of a chain: an operand is INPUT, the number of an earlier step, a constant or absent (None)."""

    op_type: str
    operands: tuple[int | float | None, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)

    def to_json(self) -> list[Any]:
        return [self.op_type, list(self.operands), dict(self.attributes)]

    @classmethod
    def from_json(cls, data: list[Any]) -> Step:
        op_type, operands, attributes = data
        return cls(op_type, tuple(operands), attributes)


@dataclass(frozen=True)
class Program:
    """The steps in order, the last one's value being the result; constants are floats, references are ints."""

    steps: tuple[Step, ...]

    def __call__(self, x: Fraction) -> Fraction:
        """The chain's value at ``x``, on exact rationals."""
        values: list[Fraction] = []
        for step in self.steps:
            arguments = [self._value(operand, x, values) for operand in step.operands]
            values.append(ALL[step.op_type](step.attributes)(*arguments))
        return values[-1]

    @staticmethod
    def _value(operand: int | float | None, x: Fraction, values: list[Fraction]) -> Fraction | None:
        if operand is None:
            return None
        if isinstance(operand, float):
            return Fraction(operand)
        return x if operand == INPUT else values[operand]

    def to_text(self) -> str:
        """JSON, the same for equal programs."""
        return json.dumps([step.to_json() for step in self.steps], sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> Program:
        return cls(tuple(Step.from_json(item) for item in json.loads(text)))
