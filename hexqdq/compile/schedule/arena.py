"""Fixed offsets for buffers by the steps in which they live."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hexqdq.compile.product import ALIGNMENT


@dataclass(frozen=True)
class Lifetime:
    """A buffer's bytes, needed from step ``first`` to step ``last``, both included."""

    name: str
    nbytes: int
    first: int
    last: int

    def meets(self, other: Lifetime) -> bool:
        return self.first <= other.last and other.first <= self.last


def aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def planned(lifetimes: Sequence[Lifetime], slack: int) -> tuple[dict[str, int], int]:
    """Offsets by name and the bytes of the whole arena.

    The largest buffers choose first; each takes the smallest gap that holds it among the buffers
    alive at the same time. Every buffer has ``slack`` bytes of its own behind it.
    """
    offsets: dict[str, int] = {}
    placed: list[Lifetime] = []
    total = 0
    for item in sorted(lifetimes, key=lambda life: (-life.nbytes, life.first, life.name)):
        size = aligned(item.nbytes + slack)
        taken = sorted((offsets[p.name], offsets[p.name] + aligned(p.nbytes + slack)) for p in placed if p.meets(item))
        offsets[item.name] = best_gap(taken, size)
        total = max(total, offsets[item.name] + size)
        placed.append(item)
    return offsets, total


def best_gap(taken: list[tuple[int, int]], size: int) -> int:
    """The start of the smallest gap of at least ``size`` bytes, else the end of everything."""
    best: tuple[int, int] | None = None
    position = 0
    for start, end in taken:
        gap = start - position
        if gap >= size and (best is None or gap < best[0]):
            best = (gap, position)
        position = max(position, end)
    return best[1] if best else position
