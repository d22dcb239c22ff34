"""Overrides: choices of a recipe for some tensors or nodes only."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hexqdq.errors import UsageError
from hexqdq.qtypes import QType

ACTIVATION_TYPES = (QType.U8, QType.S8, QType.U16, QType.S16)
WEIGHT_TYPES = (QType.S8, QType.U8, QType.S4, QType.S16)
SELECTORS = ("tensor", "nodes", "op_type")
CHOICES = ("activations", "weights", "low", "high", "keep_float")
HINT = 'write it as {"tensor": "x", "activations": "u16"}; docs/guide.md lists what it may hold'


@dataclass(frozen=True)
class Override:
    """What differs for a ``tensor`` by name, for ``nodes`` by a name pattern, or for the nodes of an ``op_type``.

    ``activations`` is the type of the tensor, or of what the nodes give, and of all that shares its parameters;
    ``low`` and ``high`` a tensor's range; ``weights`` the type of the nodes' constant weights, a tensor's
    being those of which it is; ``keep_float`` leaves the nodes, or the maker of the tensor, unquantized.
    Raises UsageError where it names not one of the three, or nothing that differs.
    """

    tensor: str | None = None
    nodes: str | None = None
    op_type: str | None = None
    activations: QType | None = None
    weights: QType | None = None
    low: float | None = None
    high: float | None = None
    keep_float: bool = False

    def __post_init__(self) -> None:
        named = [name for name in SELECTORS if getattr(self, name) is not None]
        if len(named) != 1 or not isinstance(getattr(self, named[0]), str):
            raise _wrong(self, f"names {', '.join(named) or 'nothing'}; expected one of {', '.join(SELECTORS)}")
        _require_type(self, "activations", self.activations, ACTIVATION_TYPES)
        _require_type(self, "weights", self.weights, WEIGHT_TYPES)
        if not isinstance(self.keep_float, bool):
            raise _wrong(self, f"keep_float is {self.keep_float!r}; expected true or false")
        if (self.low is None) != (self.high is None) or (self.low is not None and self.tensor is None):
            raise _wrong(self, "has a range without both ends or a tensor; expected a tensor with low and high")
        if self.low is not None and self.high is not None:
            ends = (self.low, self.high)
            if not all(isinstance(end, int | float) and math.isfinite(end) for end in ends) or self.low > self.high:
                raise _wrong(self, f"has the range {list(ends)}; expected finite numbers, low first")
        if not (self.keep_float or any(getattr(self, name) is not None for name in CHOICES[:-1])):
            raise _wrong(self, f"changes nothing; expected one of {', '.join(CHOICES)}")

    @property
    def selector(self) -> str:
        """What it is for, as text."""
        (named,) = (name for name in SELECTORS if getattr(self, name) is not None)
        return f"{named} {getattr(self, named)!r}"

    def to_json(self) -> dict[str, Any]:
        held = {name: value for name, value in asdict(self).items() if value not in (None, False)}
        return {name: value.label if isinstance(value, QType) else value for name, value in held.items()}

    @classmethod
    def from_json(cls, data: object) -> Override:
        """The override of ``to_json``'s data."""
        if not isinstance(data, Mapping):
            raise UsageError("recipe option 'overrides'", f"holds {data!r}; expected objects", HINT)
        unknown = set(data) - {*SELECTORS, *CHOICES}
        if unknown:
            valid = ", ".join((*SELECTORS, *CHOICES))
            raise UsageError("recipe option 'overrides'", f"has {min(unknown)!r}; expected {valid}", HINT)
        values = dict(data)
        for name, valid_types in (("activations", ACTIVATION_TYPES), ("weights", WEIGHT_TYPES)):
            if name in values:
                values[name] = _type(name, values[name], valid_types)
        return cls(**values)


def _type(name: str, label: object, valid: tuple[QType, ...]) -> QType:
    for dtype in valid:
        if dtype.label == label:
            return dtype
    expected = ", ".join(dtype.label for dtype in valid)
    raise UsageError("recipe option 'overrides'", f"has {name} {label!r}; expected one of {expected}", HINT)


def _require_type(override: Override, name: str, dtype: QType | None, valid: tuple[QType, ...]) -> None:
    if dtype is not None and dtype not in valid:
        expected = ", ".join(known.label for known in valid)
        raise _wrong(override, f"has {name} {getattr(dtype, 'label', dtype)!r}; expected one of {expected}")


def _wrong(override: Override, problem: str) -> UsageError:
    held = {name: value for name, value in asdict(override).items() if value not in (None, False)}
    shown = ", ".join(f"{name} {getattr(value, 'label', value)!r}" for name, value in held.items())
    return UsageError(f"override ({shown})", problem, HINT)
