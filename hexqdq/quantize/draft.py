"""A quantization under way: what the repair passes read and replace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hexqdq.import_.product import ImportedModel
from hexqdq.qtypes import QType
from hexqdq.quantize.calibration.calibrate import Progress, Sample
from hexqdq.quantize.mixed.record import MixedPrecision
from hexqdq.quantize.planning.encodings import Encodings, encodings
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
    contraction. ``mixed`` says how types were chosen, if they were.
    """

    imported: ImportedModel
    recipe: Recipe
    ranges: Mapping[str, Range] = field(default_factory=dict)
    wide_ranges: Mapping[str, Range] = field(default_factory=dict)
    types: Mapping[str, QType] = field(default_factory=dict)
    weights: Mapping[str, QuantizedConstant] = field(default_factory=dict)
    corrections: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    mixed: MixedPrecision | None = None

    def encodings(self, made: Plan) -> Encodings:
        """The parameters of a plan's groups."""
        return encodings(made, self.ranges, self.types, self.recipe.activations, self.wide_ranges)


@dataclass(frozen=True)
class Repair:
    """A pass that wins back accuracy: returns the draft with something replaced.

    ``wanted`` reads the recipe; ``what`` is told as progress; ``run`` streams the samples, any number
    of times.
    """

    what: str
    wanted: Callable[[Recipe], bool]
    run: Callable[[Draft, Iterable[Sample], Progress | None], Draft]
