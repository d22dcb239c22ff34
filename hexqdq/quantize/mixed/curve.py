"""The curve from 8 bits everywhere to 16 bits everywhere, measured where it matters, and the choice on it."""

from __future__ import annotations

from collections.abc import Callable, Collection

from hexqdq.quantize.mixed.outputs import decibels
from hexqdq.quantize.mixed.record import Point
from hexqdq.quantize.mixed.widen import Step, Widening

SHOWN = 6
"""Points between the ends that are measured for the report."""
NEAR = 0.2
"""dB that are not worth a further step where the budget does not reach the target."""
POOR, WORSE = 20.0, 10.0
"""dB of outputs below which a budget is passed where 16 bits everywhere would be that many dB better, and which"""
DECENT = 30.0
"""dB are then enough."""


class Curve:
    """Prefixes of the steps of a widening, measured at need.

    ``measure`` gives the noise at the outputs once some groups have 16 bits; ``floor`` is the noise with all
    of them. The first ``within`` steps keep to the budget.
    """

    def __init__(self, measure: Callable[[Collection[str]], float], floor: float) -> None:
        self._measure, self.floor = measure, floor
        self.steps: tuple[Step, ...] = ()
        self.within = 0
        self._measured: dict[int, float] = {}
        self.taken = 0

    @property
    def ceiling(self) -> float:
        """The noise with 8 bits everywhere."""
        return self.noise(0)

    def extend(self, widening: Widening, budget: float) -> None:
        """Takes the steps of a widening: those of the budget first, then the rest."""
        inside = widening.steps(budget)
        self.within, self.steps = len(inside), (*inside, *widening.steps(1.0))

    def groups(self, count: int) -> set[str]:
        """What the first ``count`` steps widen."""
        return {group for step in self.steps[:count] for group in step.groups}

    def noise(self, count: int) -> float:
        """The measured noise after ``count`` steps."""
        if count not in self._measured:
            self._measured[count] = self._measure(self.groups(count))
        return self._measured[count]

    def choose(self, allowed: float, budget: float, target: str) -> str:
        """Takes the cheapest point of noise at most ``allowed`` or what comes nearest; returns why, as a sentence."""
        self._survey()
        if self.noise(0) <= allowed:
            return f"8 bits everywhere {target}"
        if self.noise(self.within) <= allowed:
            self.taken = self._first(allowed, 0, self.within)
            return f"the cheapest that {target}"
        spent = f"a budget of {100 * budget:g} % of the multiply-accumulates"
        left = decibels(self.noise(self.within))
        if left >= POOR or decibels(self.floor) - left <= WORSE:
            self.taken = self._nearest()
            return f"the best that {spent} buys"
        self.taken = self._first(max(allowed, 10 ** (-DECENT / 10)), self.within, len(self.steps))
        return f"the cheapest of {DECENT:g} dB or near 16 bits everywhere; {spent} would leave {left:.1f} dB"

    def points(self, packets: float) -> tuple[Point, ...]:
        """The measured points that no cheaper one beats; ``packets`` are those of the model."""
        points, best = [], 2.0
        for count, noise in sorted(self._measured.items()):
            if noise < best or count == self.taken:
                best = noise
                points.append(self._point(count, noise, packets))
        return tuple(points)

    def _point(self, count: int, noise: float, packets: float) -> Point:
        share, added = (self.steps[count - 1].share, self.steps[count - 1].packets) if count else (0.0, 0.0)
        percent = 100 * added / packets if packets else 0.0
        groups = len(self.groups(count))
        return Point(groups, 100 * share, percent, decibels(noise), count == self.taken)

    def _survey(self) -> None:
        """Measures the ends and points at even distances of predicted noise in dB."""
        last = len(self.steps)
        for count in (0, self.within, last):
            self.noise(count)
        predicted = [decibels(step.noise + self.floor) for step in self.steps]
        for number in range(1, SHOWN + 1 if predicted else 1):
            level = predicted[0] + (predicted[-1] - predicted[0]) * number / (SHOWN + 1)
            self.noise(1 + next(index for index, value in enumerate(predicted) if value >= level))

    def _first(self, allowed: float, low: int, high: int) -> int:
        """The first number of steps above ``low``, which is too few, of noise at most ``allowed``; ``high`` at most."""
        while high - low > 1:
            middle = (low + high) // 2
            if self.noise(middle) <= allowed:
                high = middle
            else:
                low = middle
        return high

    def _nearest(self) -> int:
        """The cheapest measured point of the budget within NEAR dB of the best."""
        inside = {count: decibels(noise) for count, noise in sorted(self._measured.items()) if count <= self.within}
        best = max(inside.values())
        return next(count for count, sqnr in inside.items() if sqnr >= best - NEAR)
