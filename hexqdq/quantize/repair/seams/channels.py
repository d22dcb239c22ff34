"""What the channels of activations reach, over the samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from hexqdq.quantize.calibration.calibrate import Progress, Runner, Sample

Floats = NDArray[np.float64]

FEWEST = 512
"""Values of a channel over all samples from which its reach is known: unseen values pass what few ones reached,
and once all channels reach equally far, each that does saturates."""


@dataclass(frozen=True, eq=False)
class Channels:
    """Per channel [channels]: the least and largest value, the mean magnitude and the mean square.

    ``count`` is the number of values that each was found from.
    """

    low: Floats
    high: Floats
    magnitude: Floats
    square: Floats
    count: int

    def joined(self, other: Channels) -> Channels:
        """Both together, as sums: magnitudes and squares add, to be divided by the number of samples."""
        return Channels(
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.magnitude + other.magnitude,
            self.square + other.square,
            self.count + other.count,
        )

    def reach(self, factors: Floats) -> float:
        """The length of the range of the channels over ``factors``, with 0 in it."""
        return float(max((self.high / factors).max(), 0.0) - min((self.low / factors).min(), 0.0))

    def over(self, samples: int) -> Channels:
        return Channels(self.low, self.high, self.magnitude / samples, self.square / samples, self.count)


def observe_channels(
    model: ir.Model, axes: Mapping[str, int], samples: Iterable[Sample], progress: Progress | None
) -> dict[str, Channels]:
    """The channels of the named values along their axes. Streams: memory holds the samples that run at once."""
    run = Runner(model, tuple(axes))
    found: dict[str, Channels] = {}
    count = 0
    for seen in run.each(samples, lambda index, results: {n: _of(v, axes[n]) for n, v in results}, progress):
        found = {name: channels.joined(found[name]) if name in found else channels for name, channels in seen.items()}
        count += 1
    return {name: channels.over(count) for name, channels in found.items()}


def _of(values: NDArray[Any], axis: int) -> Channels:
    flat = np.moveaxis(values, axis, 0).reshape(values.shape[axis], -1)
    magnitude = np.abs(flat)
    return Channels(
        flat.min(axis=1).astype(np.float64),
        flat.max(axis=1).astype(np.float64),
        magnitude.mean(axis=1, dtype=np.float64),
        np.square(flat, dtype=np.float64).mean(axis=1),
        flat.shape[1],
    )
