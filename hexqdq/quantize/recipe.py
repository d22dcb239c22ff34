"""Recipe: every choice of a quantization, typed, checked and stored as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from hexqdq.errors import UsageError
from hexqdq.qtypes import QType
from hexqdq.quantize.observers import METHODS
from hexqdq.quantize.observers.base import Knobs
from hexqdq.quantize.overrides import ACTIVATION_TYPES, WEIGHT_TYPES, Override

CORRECT = "correct the recipe"

BLOCKS = (0, *(1 << bits for bits in range(4, 13)))
"""Sizes of blocks, as back ends take them: powers of two from 16."""
BINS = (512, 1 << 20)
"""Fewest and most bins of a histogram: two per level of 8 bits, and 8 MB."""

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "auto": {},
    "a8w8": {"activations": "u8", "weights": "s8", "mixed": False},
    "a16w8": {"activations": "u16", "weights": "s8", "mixed": False},
    "a8w4": {"activations": "u8", "weights": "s4", "weight_block": 32, "awq": True, "gptq": True, "mixed": False},
    "a16w4": {"activations": "u16", "weights": "s4", "weight_block": 32, "awq": True, "gptq": True, "mixed": False},
}
"""Recipes by the bits of their activations and weights, by what differs from the default, which is ``auto``."""


@dataclass(frozen=True)
class Recipe:
    """How to quantize; the defaults suit convolutional networks.

    ``method`` names an observer; ``percentile``, ``mse_power`` and ``histogram_bins`` are its knobs.
    ``activations`` and ``weights`` are element types; signed weights are symmetric. Weights have a scale
    per output channel where ``per_channel``, 4-bit ones of matrices per ``weight_block`` elements of a
    channel unless that is 0. ``keep_float`` lists nodes by name that are not quantized, ``overrides`` what
    differs for some tensors or nodes, later ones above earlier ones. ``bias_correct`` takes the mean error
    out of biases; ``equalize``, ``smooth`` and ``awq`` scale channels before; ``gptq`` and ``adaround`` round
    weights for what they read, with second moments damped by ``rounding_damping`` of their mean. ``mixed``
    gives 16 bits to the activations whose 8 bits hurt the outputs most: at most ``budget`` percent of the
    multiply-accumulates, or until the outputs are within ``target_drop`` dB of those with 16 bits everywhere.
    Raises UsageError where a choice is unknown.
    """

    method: str = "mse"
    activations: QType = QType.U8
    weights: QType = QType.S8
    per_channel: bool = True
    weight_block: int = 0
    keep_float: tuple[str, ...] = ()
    overrides: tuple[Override, ...] = ()
    percentile: float = Knobs.percentile
    mse_power: float = Knobs.mse_power
    histogram_bins: int = Knobs.histogram_bins
    equalize: bool = False
    smooth: bool = True
    awq: bool = False
    gptq: bool = False
    adaround: bool = False
    rounding_damping: float = 0.01
    bias_correct: bool = True
    mixed: bool = True
    budget: float = 25.0
    target_drop: float = 0.5

    def __post_init__(self) -> None:
        _require("method", self.method, tuple(METHODS))
        _require("activations", self.activations, ACTIVATION_TYPES)
        _require("weights", self.weights, WEIGHT_TYPES)
        _require("weight_block", self.weight_block, BLOCKS)
        for name in ("per_channel", "equalize", "smooth", "awq", "gptq", "adaround", "bias_correct", "mixed"):
            if not isinstance(getattr(self, name), bool):
                raise UsageError(
                    f"recipe option {name!r}", f"is {getattr(self, name)!r}; expected true or false", CORRECT
                )
        if not isinstance(self.keep_float, tuple) or not all(isinstance(name, str) for name in self.keep_float):
            raise UsageError(
                "recipe option 'keep_float'", f"is {self.keep_float!r}; expected a tuple of node names", CORRECT
            )
        if not isinstance(self.overrides, tuple) or not all(isinstance(one, Override) for one in self.overrides):
            raise UsageError("recipe option 'overrides'", "is no tuple of overrides", CORRECT)
        _require_number("percentile", self.percentile, 50, 100)
        _require_number("mse_power", self.mse_power, 1, 8)
        _require_number("rounding_damping", self.rounding_damping, 1e-6, 100)
        _require_number("budget", self.budget, 0, 100)
        _require_number("target_drop", self.target_drop, 0, 60)
        _require_number("histogram_bins", self.histogram_bins, *BINS)
        if not isinstance(self.histogram_bins, int):
            raise UsageError(
                "recipe option 'histogram_bins'", f"is {self.histogram_bins!r}; expected a whole number", CORRECT
            )

    def knobs(self) -> Knobs:
        """What the observers of the recipe are told."""
        return Knobs(self.percentile, self.mse_power, self.histogram_bins)

    def to_json(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "activations": self.activations.label,
            "weights": self.weights.label,
            "per_channel": self.per_channel,
            "weight_block": self.weight_block,
            "keep_float": list(self.keep_float),
            "overrides": [override.to_json() for override in self.overrides],
            "percentile": self.percentile,
            "mse_power": self.mse_power,
            "histogram_bins": self.histogram_bins,
            "equalize": self.equalize,
            "smooth": self.smooth,
            "awq": self.awq,
            "gptq": self.gptq,
            "adaround": self.adaround,
            "rounding_damping": self.rounding_damping,
            "bias_correct": self.bias_correct,
            "mixed": self.mixed,
            "budget": self.budget,
            "target_drop": self.target_drop,
        }

    @classmethod
    def preset(cls, name: str) -> Recipe:
        """The recipe of PRESETS by that name."""
        if name not in PRESETS:
            raise UsageError("preset", f"is {name!r}; expected one of {', '.join(PRESETS)}", "name one of them")
        return cls.from_json(PRESETS[name])

    @classmethod
    def from_json(cls, data: Mapping[str, Any], base: Recipe | None = None) -> Recipe:
        """The recipe of ``to_json``'s data; options left out are those of ``base``, or the defaults."""
        known = {field.name for field in fields(cls)}
        for name in data:
            _require("name", name, tuple(sorted(known)))
        values = dict(data)
        for name in ("activations", "weights"):
            if name in values:
                values[name] = _type(name, values[name])
        if "keep_float" in values:
            values["keep_float"] = tuple(values["keep_float"])
        if "overrides" in values:
            values["overrides"] = _overrides(values["overrides"])
        return replace(base or cls(), **values)

    def to_text(self) -> str:
        """Canonical JSON text, the same for equal recipes."""
        return json.dumps(self.to_json(), sort_keys=True)


def _overrides(data: object) -> tuple[Override, ...]:
    if not isinstance(data, list | tuple):
        raise UsageError("recipe option 'overrides'", f"is {data!r}; expected a list of objects", CORRECT)
    return tuple(map(Override.from_json, data))


def _type(name: str, label: object) -> QType:
    for member in QType:
        if member.label == label:
            return member
    valid = ACTIVATION_TYPES if name == "activations" else WEIGHT_TYPES
    labels = ", ".join(member.label for member in valid)
    raise UsageError(f"recipe option {name!r}", f"is {label!r}; expected one of {labels}", CORRECT)


def _require_number(name: str, value: object, low: float, high: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise UsageError(f"recipe option {name!r}", f"is {value!r}; expected a number from {low} to {high}", CORRECT)


def _require(name: str, value: object, valid: tuple[object, ...]) -> None:
    if value not in valid:
        shown = ", ".join(str(getattr(choice, "label", choice)) for choice in valid)
        found = getattr(value, "label", value)
        raise UsageError(f"recipe option {name!r}", f"is {found!r}; expected one of {shown}", CORRECT)
