"""How wrong a model's outputs are: one number for outputs and channels of any magnitude."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Powers = NDArray[np.float64]
Outputs = Mapping[str, Array]

FEWEST = 16
"""Values of a channel, over all samples, from which its power is known well enough to stand alone."""


class OutputError:
    """The share of noise in outputs y' of a model that should be y, from 0 (none) to 1:

        mean over outputs of  sum over channels c of a_c min(1, e_c / a_c^2)  /  sum of a_c

    with a_c^2 = sum y_c^2 and e_c = sum (y'_c - y_c)^2. A channel counts by its amplitude a_c: by its power, a
    detector's scores would not count beside its boxes, which stand in one tensor with them; all channels
    alike, thousands of classes that never occur would drown those that do. A channel that is all noise is
    lost and cannot be lost twice. Every output counts alike, caches that the next step reads too. Channels
    are the last axis, or axis 1 where that is the shorter one of a picture; an output with fewer than FEWEST
    values per channel is one channel, one with none does not count. Outputs that are integers count the
    share of elements that differ.
    """

    def __init__(self, exact: Sequence[Outputs]) -> None:
        self._exact = exact
        self._axes = {name: _channel_axis(values, len(exact)) for name, values in exact[0].items() if values.size}
        self._signal = {name: self._sum(name, exact, None) for name in self._axes}

    def __call__(self, found: Sequence[Outputs], reference: Sequence[Outputs] | None = None) -> float:
        """The noise of what was found, against ``reference`` where the exact outputs are not asked for."""
        compared = self._exact if reference is None else reference
        shares = [self._share(name, found, compared) for name in self._axes]
        return float(np.mean(shares)) if shares else 0.0

    def _share(self, name: str, found: Sequence[Outputs], reference: Sequence[Outputs]) -> float:
        error, signal = self._sum(name, found, reference), self._signal[name]
        ratios = np.where(error == 0, 0.0, error / np.maximum(signal, np.finfo(np.float64).tiny))
        shares = np.minimum(np.nan_to_num(ratios, nan=1.0, posinf=1.0), 1.0)
        amplitudes = np.sqrt(signal) if signal.any() else np.ones_like(signal)
        return float(shares @ amplitudes / amplitudes.sum())

    def _sum(self, name: str, outputs: Sequence[Outputs], reference: Sequence[Outputs] | None) -> Powers:
        """The summed squares [channels] of the outputs or of what they are off the reference."""
        total: Any = 0.0
        for index, values in enumerate(outputs):
            other = None if reference is None else reference[index][name]
            total = total + _powers(values[name], other, self._axes[name])
        return np.asarray(total)


def decibels(noise: float) -> float:
    """A share of noise as a ratio of signal to noise."""
    return -10 * math.log10(max(noise, 1e-30))


def _channel_axis(values: Array, samples: int) -> int | None:
    shape = values.shape
    if len(shape) < 2:
        return None
    axis = 1 if len(shape) > 3 and shape[1] < shape[-1] else len(shape) - 1
    return axis if values.size * samples >= FEWEST * shape[axis] else None


def _powers(values: Array, other: Array | None, axis: int | None) -> Powers:
    """The summed squares per channel [channels], of differences from ``other`` if given; of integers by 1 or 0."""
    if values.dtype.kind == "f":
        squares = (values.astype(np.float64) - (0.0 if other is None else other)) ** 2
    else:
        squares = np.ones(values.shape) if other is None else (values != other).astype(np.float64)
    by_channel = squares.reshape(1, -1) if axis is None else np.moveaxis(squares, axis, 0)
    return np.asarray(by_channel.reshape(by_channel.shape[0], -1).sum(axis=1))
