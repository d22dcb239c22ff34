"""Activation-aware weight scaling: few levels go to the weights that meet large activations.

    s_i = E|x_i|^a,  x'_i = x_i / s_i,  W'_oi = W_oi s_i,  a = argmin L(a)

for the channel i that one or more contractions read, where the op that writes it takes up 1 / s_i (Lin,
Tang, Tang, Yang, Chen, Wang, Xiao, Dang, Gan, Han 2023, "AWQ: Activation-aware Weight Quantization for LLM
Compression and Acceleration", equations 4 and 5). The paper runs each a over its samples; here one run
gives E|x_i| and E[x_i^2], and the error at the readers' outputs is predicted from the integers themselves,
whose roundings are taken to be independent of each other:

    L(a) = sum over readers of [ sum_oi (W_oi - Q(W')_oi / s_i)^2 E[x_i^2] + (Dx^2 / 12) sum_oi W'_oi^2 ] / P

where Q is the weights' own quantization, Dx^2 the squared steps of the input's range and of the gains
that make it, if any, and P the power sum_oi W_oi^2 E[x_i^2] of the reader's output. The search is repeated
from where it ended until nothing is better by WORTH. Tensors whose readers all have weights of 8 bits or
more stay, and those of which the samples show fewer than FEWEST values a channel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hexqdq import numerics
from hexqdq.quantize.calibration.calibrate import Progress, Sample
from hexqdq.quantize.draft import Draft
from hexqdq.quantize.planning.encodings import NARROW_BITS
from hexqdq.quantize.planning.graph import constant, input_at, weight_axis
from hexqdq.quantize.recipe import Recipe
from hexqdq.quantize.repair.seams.channels import FEWEST, Channels, observe_channels
from hexqdq.quantize.repair.seams.find import Reader, Seam, fixed_values, seams
from hexqdq.quantize.repair.seams.weights import largest_gain, read_factors, scale
from hexqdq.quantize.writing.forms import WeightForm, factor_type, weight_form
from hexqdq.quantize.writing.weights import quantize_weights

Floats = NDArray[np.float64]

EXPONENTS = tuple(step / 10 for step in range(1, 11))
WORTH = 0.98
"""The predicted error must fall to this share of what it was."""
FAINTEST = 2.0**-16
"""A channel's mean magnitude counts as this share of the largest at least."""
OUTPUTS = 256
"""Outputs of a matrix that are looked at, evenly spread over all."""


def wants_awq(recipe: Recipe) -> bool:
    """Whether a recipe that wants the pass gives any weights fewer than 8 bits."""
    types = (recipe.weights, *(entry.weights for entry in recipe.overrides))
    return recipe.awq and any(dtype is not None and dtype.bits < NARROW_BITS for dtype in types)


def awq(draft: Draft, samples: Iterable[Sample], progress: Progress | None = None) -> Draft:
    """The draft with scales moved between activations and the few-bit weights that read them.

    Streams: memory holds the activations of the samples that run at once. The outputs of the float model
    stay what they are, up to the rounding of float32.
    """
    model = draft.imported.model.clone()
    found = [seam for seam in seams(model.graph, fixed_values(draft.recipe)) if _has_few_bits(seam, draft)]
    axes = {str(reader.data.name): reader.axis for seam in found for reader in seam.readers}
    if not axes:
        return draft
    observed = observe_channels(model, axes, samples, progress)
    changed = False
    for seam in found:
        factors = _factors(seam, observed, draft)
        if factors is not None:
            scale(model, seam, factors)
            changed = True
    return replace(draft, imported=replace(draft.imported, model=model)) if changed else draft


def _has_few_bits(seam: Seam, draft: Draft) -> bool:
    forms = (weight_form(reader.node, draft.recipe_of(str(reader.node.name))) for reader in seam.readers)
    return any(form.dtype.bits < NARROW_BITS for form in forms)


@dataclass(frozen=True, eq=False)
class _Side:
    """A reader, those of its weights that are looked at, how they are stored, and the channels it reads."""

    reader: Reader
    weights: Floats
    form: WeightForm
    channels: Channels

    def error(self, factors: Floats, levels: int, gain_step: float) -> float:
        """The power of the error over that of the output."""
        laid, power = read_factors(self.reader, factors), read_factors(self.reader, self.channels.square)
        scaled, form = self.weights * laid, self.form
        stored = quantize_weights(scaled.astype(np.float32), form.axis, form.dtype, 1.0, None, form.block)
        wrong = self.weights - numerics.dequantize(stored.values, stored.params) / laid
        steps = ((self.channels.reach(factors) / levels) ** 2 + gain_step**2) / 12
        signal = max((self.weights**2 * power).sum(), np.finfo(np.float64).tiny)
        return float(((wrong**2 * power).sum() + steps * (scaled**2).sum()) / signal)


def _side(reader: Reader, observed: Mapping[str, Channels], draft: Draft) -> _Side:
    weights = constant(input_at(reader.node, 1))
    assert weights is not None
    axis = weight_axis(reader.node)
    if weights.ndim == 2 and axis is not None:
        count = weights.shape[axis]
        weights = weights.take(np.linspace(0, count - 1, min(count, OUTPUTS)).astype(np.int64), axis)
    form = weight_form(reader.node, draft.recipe_of(str(reader.node.name)))
    return _Side(reader, weights.astype(np.float64), form, observed[str(reader.data.name)])


def _factors(seam: Seam, observed: Mapping[str, Channels], draft: Draft) -> Floats | None:
    """The factors [channels] of least predicted error, None where none are worth while."""
    sides = [_side(reader, observed, draft) for reader in seam.readers]
    magnitude = np.max([side.channels.magnitude for side in sides], axis=0)
    if min(side.channels.count for side in sides) < FEWEST or not magnitude.any():
        return None
    dtype, gain_levels = draft.recipe.activations, factor_type(draft.recipe).high

    def error(factors: Floats) -> float:
        gain_step = largest_gain(seam, factors) / gain_levels
        return sum(side.error(factors, dtype.high - dtype.low, gain_step) for side in sides)

    found = np.ones(seam.channels)
    least = error(found)
    while True:
        candidates = [found * _power(magnitude / found, exponent) for exponent in EXPONENTS]
        errors = [error(candidate) for candidate in candidates]
        if min(errors) >= WORTH * least:
            return found if (found != 1).any() else None
        least = min(errors)
        found = candidates[errors.index(least)]


def _power(magnitude: Floats, exponent: float) -> Floats:
    """magnitude^exponent, of geometric mean 1."""
    logs = exponent * np.log2(np.maximum(magnitude, magnitude.max() * FAINTEST))
    return np.asarray(2.0 ** (logs - logs.mean()))
