"""What elementwise ops share: their inputs in order and the limits on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from hexqdq.ops.contraction import ACTIVATION_TYPES
from hexqdq.ops.spec import DtypeIn, PerTensor, RankIn, SameDtype
from hexqdq.ops.unit import QuantUnit

Array = NDArray[Any]

RANKS = (0, 1, 2, 3, 4)

UNARY_LIMITS = (
    DtypeIn(0, ACTIVATION_TYPES),
    DtypeIn(-1, ACTIVATION_TYPES),
    SameDtype(),
    PerTensor(0),
    PerTensor(-1),
)

BINARY_LIMITS = (
    *UNARY_LIMITS,
    DtypeIn(1, ACTIVATION_TYPES),
    PerTensor(1),
    RankIn(0, RANKS),
    RankIn(1, RANKS),
)


def operands(unit: QuantUnit, inputs: Sequence[Array]) -> list[Array]:
    """The unit's inputs in ONNX order, constants filled in."""
    variable = iter(inputs)
    return [
        unit.constants[t.name] if t.name in unit.constants else next(variable) for t in unit.inputs if t is not None
    ]
