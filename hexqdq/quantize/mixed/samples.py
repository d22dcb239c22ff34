"""A few of many samples."""

from __future__ import annotations

from collections.abc import Iterable

from hexqdq.quantize.calibration.calibrate import Sample


def few(samples: Iterable[Sample], count: int) -> list[Sample]:
    """At most ``count`` samples, evenly spaced over a stream of unknown length; holds twice as many at most."""
    kept, stride = list[Sample](), 1
    for index, sample in enumerate(samples):
        if index % stride == 0:
            kept.append(sample)
        if len(kept) == 2 * count:
            kept, stride = kept[::2], 2 * stride
    return [kept[index * len(kept) // count] for index in range(count)] if len(kept) > count else kept
