"""OpSpec: what one ONNX op means to each room, as a row of data; limits that carry their sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hexqdq.errors import QuantizationError
from hexqdq.ops.traits import QuantRow
from hexqdq.ops.unit import QuantUnit
from hexqdq.qtypes import QType
from hexqdq.target import Target

Array = NDArray[Any]


class Limit(Protocol):
    """A condition on a unit; ``sentence`` states it for reports, docs and messages."""

    @property
    def sentence(self) -> str: ...

    def violation(self, unit: QuantUnit, target: Target) -> str | None:
        """What was found where the unit breaks the limit, else None."""


@dataclass(frozen=True, kw_only=True)
class OpSpec(QuantRow):
    """The row of one ONNX op that has an integer form.

    ``reference`` computes the outputs from the variable inputs on integers (the definition of the
    op); ``check`` derives the integer constants and so raises RescaleError where they leave TOSA's
    domain; ``macs`` counts multiply-accumulates. ``pointwise`` marks ops whose output depends on the
    inputs' elements at the same place only.
    """

    limits: tuple[Limit, ...]
    reference: Callable[[QuantUnit, Sequence[Array]], list[Array]]
    check: Callable[[QuantUnit], object]
    macs: Callable[[QuantUnit], int] = lambda unit: 0
    pointwise: bool = False

    def refusal(self, unit: QuantUnit, target: Target) -> str | None:
        """The first broken limit as a sentence with what was found, None where the NPU takes the unit."""
        for limit in self.limits:
            found = limit.violation(unit, target)
            if found is not None:
                return f"{limit.sentence}; found {found}"
        try:
            self.check(unit)
        except QuantizationError as error:
            return f"{error.subject}: {error.problem}"
        return None


def axis_of(unit: QuantUnit, default: int) -> int:
    """The unit's ``axis`` attribute as a non-negative index into input 0."""
    axis = unit.attributes.get("axis", default)
    assert isinstance(axis, int)
    rank = len(unit.input(0).shape)
    return axis + rank if axis < 0 else axis


@dataclass(frozen=True)
class DtypeIn:
    """Input (or output 0, as ``index`` -1) holds one of the types."""

    index: int
    types: tuple[QType, ...]

    @property
    def sentence(self) -> str:
        place = "the output" if self.index < 0 else f"input {self.index}"
        return f"{place} must be {' or '.join(t.label for t in self.types)}"

    def violation(self, unit: QuantUnit, target: Target) -> str | None:
        if self.index >= 0 and not unit.has_input(self.index):
            return None
        tensor = unit.outputs[0] if self.index < 0 else unit.input(self.index)
        return None if tensor.dtype in self.types else f"{tensor.dtype.label} {tensor.name!r}"


@dataclass(frozen=True)
class SameDtype:
    """The variable inputs and the outputs hold one type."""

    sentence: str = "inputs and outputs must have one type"

    def violation(self, unit: QuantUnit, target: Target) -> str | None:
        types = [t.dtype.label for t in (*unit.variable_inputs(), *unit.outputs)]
        return None if len(set(types)) == 1 else " and ".join(sorted(set(types)))


@dataclass(frozen=True)
class RankIn:
    """Input ``index`` has one of the ranks."""

    index: int
    ranks: tuple[int, ...]

    @property
    def sentence(self) -> str:
        return f"input {self.index} must have rank {' or '.join(map(str, self.ranks))}"

    def violation(self, unit: QuantUnit, target: Target) -> str | None:
        shape = unit.input(self.index).shape
        return None if len(shape) in self.ranks else f"rank {len(shape)} ({'x'.join(map(str, shape))})"


@dataclass(frozen=True)
class ConstInput:
    """Input ``index``, where given, is constant."""

    index: int

    @property
    def sentence(self) -> str:
        return f"input {self.index} must be constant"

    def violation(self, unit: QuantUnit, target: Target) -> str | None:
        if not unit.has_input(self.index) or unit.is_constant(self.index):
            return None
        return f"the computed tensor {unit.input(self.index).name!r}"


@dataclass(frozen=True)
class PerTensor:
    """Input (or output 0, as ``index`` -1) has one scale."""

    index: int

    @property
    def sentence(self) -> str:
        place = "the output" if self.index < 0 else f"input {self.index}"
        return f"{place} must have one scale and zero point"

    def violation(self, unit: QuantUnit, target: Target) -> str | None:
        tensor = unit.outputs[0] if self.index < 0 else unit.input(self.index)
        if tensor.params is None:
            return f"no quantization parameters on {tensor.name!r}"
        return None if tensor.params.is_per_tensor else f"{len(tensor.params.scale)} scales on {tensor.name!r}"


@dataclass(frozen=True)
class AttributeIn:
    """An integer or string attribute, where given, has one of the values."""

    name: str
    values: tuple[int | float | str, ...]

    @property
    def sentence(self) -> str:
        return f"attribute {self.name} must be {' or '.join(map(str, self.values))}"

    def violation(self, unit: QuantUnit, target: Target) -> str | None:
        value = unit.attributes.get(self.name, self.values[0])
        return None if value in self.values else repr(value)


@dataclass(frozen=True)
class Condition:
    """A limit of one op: ``test`` returns what was found where it is broken."""

    sentence: str
    test: Callable[[QuantUnit], str | None]

    def violation(self, unit: QuantUnit, target: Target) -> str | None:
        return self.test(unit)


def integers(values: Array) -> NDArray[np.int64]:
    """Values as int64, the type in which references compute."""
    return values.astype(np.int64)
