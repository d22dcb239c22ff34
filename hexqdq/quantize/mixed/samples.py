"""A few of many samples, the same ones in any order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

from hexqdq.quantize.calibration.calibrate import Sample


def few(samples: Iterable[Sample], count: int) -> list[Sample]:
    """The ``count`` samples whose contents have the smallest digests, by digest; holds one more at most.

    So the choice is as good as random and does not depend on the order of the samples.
    """
    kept: list[tuple[str, Sample]] = []
    for sample in samples:
        kept.append((_digest(sample), sample))
        kept = sorted(kept, key=lambda entry: entry[0])[:count]
    return [sample for _, sample in kept]


def _digest(sample: Sample) -> str:
    found = hashlib.sha256()
    for name in sorted(sample):
        values = np.ascontiguousarray(sample[name])
        found.update(f"{name} {values.dtype} {values.shape}".encode())
        found.update(values.tobytes())
    return found.hexdigest()
