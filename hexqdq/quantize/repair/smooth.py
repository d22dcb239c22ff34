"""Scale migration: channels of activations that reach far are made small and their weights large.

    x'_i = x_i / s_i,  W'_oi = W_oi s_i,  s_i = (max|x_i|)^a / (max_o |W_oi|)^(1 - a)

for the channel i of a contraction's input, written by an op whose own constants take up 1 / s_i (Xiao,
Lin, Seznec, Wu, Demouth, Han 2023, "SmoothQuant", equation 4). The paper gives one exponent a to all;
here each tensor gets the one of EXPONENTS, or s = 1, with the least noise predicted at its readers:

    sum over readers of [ (Dx^2 / 12) sum_oi (W_oi s_i)^2 + sum_o (Dw_o^2 / 12) sum_i E[x_i^2] / s_i^2 ] / P

where Dx is the step of the input's range, Dw_o that of an output channel's weights and P the power
sum_oi W_oi^2 E[x_i^2] of the reader's output. A tensor stays where that is not better by WORTH, or where
the samples show fewer than FEWEST values of a channel.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hexqdq.qtypes import QType
from hexqdq.quantize.calibration.calibrate import Progress, Sample
from hexqdq.quantize.draft import Draft
from hexqdq.quantize.recipe import Recipe
from hexqdq.quantize.repair.seams.channels import FEWEST, Channels, observe_channels
from hexqdq.quantize.repair.seams.find import Seam, fixed_values, seams
from hexqdq.quantize.repair.seams.weights import Read, largest_gain, read_weights, scale
from hexqdq.quantize.writing.forms import factor_type

Floats = NDArray[np.float64]

EXPONENTS = tuple(step / 8 for step in range(9))
WORTH = 0.8
"""The predicted noise must fall to this share of what it was."""
FARTHEST = 8
"""No channel is scaled by more than two to this power, up or down."""


def smooth(draft: Draft, samples: Iterable[Sample], progress: Progress | None = None) -> Draft:
    """The draft with scales moved from activations into the weights that read them.

    Streams: memory holds the activations of the samples that run at once. The outputs of the float model
    stay what they are.
    """
    model = draft.imported.model.clone()
    found = list(seams(model.graph, fixed_values(draft.recipe)))
    axes = {str(reader.data.name): reader.axis for seam in found for reader in seam.readers}
    if not axes:
        return draft
    observed = observe_channels(model, axes, samples, progress)
    changed = False
    for seam in found:
        factors = _factors(seam, observed, draft.recipe)
        if factors is not None:
            scale(model, seam, factors)
            changed = True
    return replace(draft, imported=replace(draft.imported, model=model)) if changed else draft


@dataclass(frozen=True, eq=False)
class _Side:
    """A reader's weights and the channels it reads."""

    weights: Read
    channels: Channels

    def noise(self, factors: Floats, steps: tuple[int, int], gain_step: float) -> float:
        """The predicted noise over signal, for steps of activations and weights and what the maker's step adds."""
        channels, weights = self.channels, self.weights
        scaled = (weights.squares * factors**2).sum()
        rows = (weights.largest * factors).max(axis=1) / steps[1]
        products = (weights.counts * (channels.square / factors**2)).sum(axis=1)
        signal = (weights.squares * channels.square).sum()
        made = (channels.reach(factors) / steps[0]) ** 2 + gain_step**2
        return float((made * scaled + (rows**2 * products).sum()) / 12 / max(signal, np.finfo(np.float64).tiny))


def _factors(seam: Seam, observed: dict[str, Channels], recipe: Recipe) -> Floats | None:
    """The factors [channels] that predict the least noise, None where it is not worth while."""
    sides = [_Side(read_weights(r, seam.channels), observed[str(r.data.name)]) for r in seam.readers]
    if min(side.channels.count for side in sides) < FEWEST:
        return None
    reach = np.max([np.maximum(np.abs(s.channels.low), np.abs(s.channels.high)) for s in sides], axis=0)
    largest = np.max([side.weights.largest.max(axis=0) for side in sides], axis=0)
    steps = (_levels(recipe.activations), recipe.weights.high)
    gain_levels = factor_type(recipe).high

    def noise(factors: Floats) -> float:
        step = largest_gain(seam, factors) / gain_levels
        return sum(side.noise(factors, steps, step) for side in sides)

    unchanged = noise(np.ones(seam.channels))
    candidates = [balanced(reach, largest, exponent) for exponent in EXPONENTS]
    best = min(candidates, key=noise)
    return best if noise(best) < WORTH * unchanged else None


def balanced(reach: Floats, largest: Floats, exponent: float) -> Floats:
    """The factors reach^a / largest^(1 - a) [channels], of geometric mean 1, as powers of two.

    Floats scale exactly by those. A channel that is always 0, or that nothing reads, gets a factor by which
    its weights, or its values, are as small as the smallest of the others.
    """
    alive = (reach > 0) & (largest > 0)
    factors = np.ones(reach.shape)
    if not alive.any():
        return factors
    logs = exponent * np.log2(reach[alive]) - (1 - exponent) * np.log2(largest[alive])
    factors[alive] = _power_of_two(logs - logs.mean())
    silent, unread = ~alive & (largest > 0), ~alive & (reach > 0)
    factors[silent] = _power_of_two(np.log2((largest * factors)[alive].min() / largest[silent]))
    factors[unread] = _power_of_two(np.log2(reach[unread] / (reach / factors)[alive].min()))
    return factors


def _power_of_two(logs: Floats) -> Floats:
    return np.asarray(2.0 ** np.minimum(np.maximum(np.floor(logs + 0.5), -FARTHEST), FARTHEST))


def _levels(dtype: QType) -> int:
    return dtype.high - dtype.low
