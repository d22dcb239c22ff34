"""Recipe: every choice of a quantization, typed, checked and stored as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from hexqdq.errors import UsageError
from hexqdq.qtypes import QType
from hexqdq.quantize.observers import METHODS

ACTIVATION_TYPES = (QType.U8, QType.S8)
WEIGHT_TYPES = (QType.S8,)


@dataclass(frozen=True)
class Recipe:
    """How to quantize; the defaults suit convolutional networks.

    ``method`` names an observer. ``activations`` and ``weights`` are element types; weights are
    symmetric, per output channel where ``per_channel``. ``keep_float`` lists nodes by name that are
    not quantized. Raises UsageError where a choice is unknown.
    """

    method: str = "minmax"
    activations: QType = QType.U8
    weights: QType = QType.S8
    per_channel: bool = True
    keep_float: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _require("method", self.method, tuple(METHODS))
        _require("activations", self.activations, ACTIVATION_TYPES)
        _require("weights", self.weights, WEIGHT_TYPES)
        if not isinstance(self.per_channel, bool):
            raise UsageError("recipe option 'per_channel'", f"is {self.per_channel!r}; expected true or false")
        if not isinstance(self.keep_float, tuple) or not all(isinstance(name, str) for name in self.keep_float):
            raise UsageError("recipe option 'keep_float'", f"is {self.keep_float!r}; expected a tuple of node names")

    def to_json(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "activations": self.activations.label,
            "weights": self.weights.label,
            "per_channel": self.per_channel,
            "keep_float": list(self.keep_float),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Recipe:
        """The recipe of ``to_json``'s data; options left out keep their defaults."""
        known = {field.name for field in fields(cls)}
        for name in data:
            _require("name", name, tuple(sorted(known)))
        values = dict(data)
        for name in ("activations", "weights"):
            if name in values:
                values[name] = _type(name, values[name])
        if "keep_float" in values:
            values["keep_float"] = tuple(values["keep_float"])
        return cls(**values)

    def to_text(self) -> str:
        """Canonical JSON text, the same for equal recipes."""
        return json.dumps(self.to_json(), sort_keys=True)


def _type(name: str, label: object) -> QType:
    for member in QType:
        if member.label == label:
            return member
    valid = ACTIVATION_TYPES if name == "activations" else WEIGHT_TYPES
    raise UsageError(f"recipe option {name!r}", f"is {label!r}; expected one of {', '.join(t.label for t in valid)}")


def _require(name: str, value: object, valid: tuple[object, ...]) -> None:
    if value not in valid:
        shown = ", ".join(str(getattr(choice, "label", choice)) for choice in valid)
        found = getattr(value, "label", value)
        raise UsageError(f"recipe option {name!r}", f"is {found!r}; expected one of {shown}", "correct the recipe")
