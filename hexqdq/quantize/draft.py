"""A quantization under way: what the repair passes read and replace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from hexqdq.import_.product import ImportedModel
from hexqdq.qtypes import QType
from hexqdq.quantize.calibration.calibrate import Progress, Sample
from hexqdq.quantize.mixed.record import MixedPrecision
from hexqdq.quantize.planning.choices import Choices
from hexqdq.quantize.planning.encodings import NARROW_BITS, Encodings, encodings
from hexqdq.quantize.planning.plan import Plan, Range
from hexqdq.quantize.recipe import Recipe
from hexqdq.quantize.writing.weights import QuantizedConstant


@dataclass(frozen=True, eq=False)
class Draft:
    """Everything that ``assemble`` makes a QDQ graph of.

    ``ranges`` are known once calibrated; ``wide_ranges`` are those for types of 16 bits, where they differ.
    ``types`` are the element types of activations by value name, each for all that shares parameters
    with the value, where they are not the recipe's. ``weights`` are finished integer weights by
    contraction, in place of rounding to nearest; ``corrections`` [channels] are added to biases, by
    contraction. ``mixed`` says how types were chosen, if they were. ``choices`` are the user's for some
    tensors and nodes, and stand above all else.
    """

    imported: ImportedModel
    recipe: Recipe
    ranges: Mapping[str, Range] = field(default_factory=dict)
    wide_ranges: Mapping[str, Range] = field(default_factory=dict)
    types: Mapping[str, QType] = field(default_factory=dict)
    weights: Mapping[str, QuantizedConstant] = field(default_factory=dict)
    corrections: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    mixed: MixedPrecision | None = None
    choices: Choices = field(default_factory=Choices)

    def encodings(self, made: Plan) -> Encodings:
        """The parameters of a plan's groups."""
        return encodings(made, self.ranges, self.types, self.recipe.activations, self.wide_ranges, self.choices)

    def recipe_of(self, node: str) -> Recipe:
        """The recipe, with the type of weights that is chosen for the node."""
        weights = self.choices.weights.get(node)
        return self.recipe if weights is None else replace(self.recipe, weights=weights)

    def is_narrow(self, made: Plan) -> bool:
        """Whether all weights and activations of a plan are of 8 bits."""
        weights = (self.recipe.weights, *self.choices.weights.values())
        return all(dtype.bits == NARROW_BITS for dtype in weights) and self.encodings(made).are_narrow


@dataclass(frozen=True)
class Repair:
    """A pass that wins back accuracy: returns the draft with something replaced.

    ``option`` is the recipe's that switches it; ``wanted`` reads the recipe; ``what`` is told as progress;
    ``run`` streams the samples, any number of times.
    """

    what: str
    option: str
    wanted: Callable[[Recipe], bool]
    run: Callable[[Draft, Iterable[Sample], Progress | None], Draft]
