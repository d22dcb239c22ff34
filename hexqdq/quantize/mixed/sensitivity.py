"""The noise that 8 bits at each reading make at the model's outputs, found in few runs.

Errors of independent roundings add in power, so the noise of a set of readings is the sum over its
members. Blocks of readings that follow each other are measured together; the loudest block is halved
until what is left undivided does not matter.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

BLOCK = 8
"""Readings measured together at first."""


def noises(measure: Callable[[range], float], count: int, runs: int, negligible: float) -> tuple[float, ...]:
    """The noise of each of ``count`` readings by about ``runs`` measures.

    Blocks below ``negligible`` are not divided; what was not divided spreads its noise evenly.
    """
    size = max(1, min(BLOCK, -(-count // max(runs // 2, 1))))
    heap = [_entry(range(start, min(start + size, count)), measure) for start in range(0, count, size)]
    heapq.heapify(heap)
    used, powers = len(heap), [0.0] * count
    while heap:
        power, start, stop = heapq.heappop(heap)
        if stop - start == 1 or -power <= negligible or used + 2 > runs:
            powers[start:stop] = [-power / (stop - start)] * (stop - start)
            continue
        middle = (start + stop) // 2
        for half in (range(start, middle), range(middle, stop)):
            heapq.heappush(heap, _entry(half, measure))
        used += 2
    return tuple(powers)


def _entry(block: range, measure: Callable[[range], float]) -> tuple[float, int, int]:
    """A block for a heap whose first entry is the loudest."""
    return -measure(block), block.start, block.stop
