"""The order in which tensor groups get 16 bits: the most noise taken out per packet added."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hexqdq.quantize.mixed.cost import Cost
from hexqdq.quantize.mixed.readings import Wiring

FREE = 1.0
"""Packets that a step costs at least, so that gains over no cost can be compared."""


@dataclass(frozen=True)
class Step:
    """The groups that one step widens, the packets of all steps so far and what is left of noise and products.

    ``share`` is that of the multiply-accumulates at 16-bit activations, from 0 to 1.
    """

    groups: tuple[str, ...]
    packets: float
    share: float
    noise: float


class Widening:
    """Greedy steps from 8 bits everywhere to 16 bits everywhere, where types are not settled.

    A step takes one reading out of the noise by widening the groups it needs, and with them every other
    reading that these complete. The next step is the one of the most noise per packet.
    """

    def __init__(self, wired: Wiring, powers: Sequence[float]) -> None:
        self._readings, self._powers, self._costs = wired.readings, powers, wired.costs
        self._narrow = wired.narrow
        self._macs = sum(cost.macs for cost in wired.costs.values())
        self._touching: dict[str, list[int]] = defaultdict(list)
        for index, reading in enumerate(wired.readings):
            for group in reading.groups():
                self._touching[group].append(index)
        self.widened: set[str] = set(wired.wide)
        self._left = {i for i, reading in enumerate(wired.readings) if not reading.is_wide(self.widened)}
        self._rates: dict[int, float] = {}
        self._spent = sum((self._cost(group) for group in sorted(wired.wide)), Cost())

    def steps(self, budget: float) -> list[Step]:
        """The steps from here on that keep the share of products at or below ``budget``; others are passed over."""
        steps = []
        while (index := self._best(budget)) is not None:
            groups = self._missing(index)
            self.widened.update(groups)
            self._spent = sum((self._cost(group) for group in groups), self._spent)
            self._left -= {i for i in self._near(groups) if self._readings[i].is_wide(self.widened)}
            for stale in self._neighbours(groups):
                self._rates.pop(stale, None)
            noise = sum(self._powers[i] for i in sorted(self._left))
            steps.append(Step(groups, self._spent.packets(), self._share(self._spent), noise))
        return steps

    def _best(self, budget: float) -> int | None:
        fitting = (index for index in sorted(self._left) if self._fits(index, budget))
        return max(fitting, key=self._rate, default=None)

    def _fits(self, index: int, budget: float) -> bool:
        missing = self._missing(index)
        if not self._narrow.isdisjoint(missing):
            return False
        return self._share(sum((self._cost(group) for group in missing), self._spent)) <= budget

    def _rate(self, index: int) -> float:
        if index not in self._rates:
            groups = self._missing(index)
            together = self.widened | set(groups)
            near = {i for i in self._near(groups) if i in self._left and self._readings[i].is_wide(together)}
            gain = sum(self._powers[i] for i in sorted(near | {index}))
            cost = sum((self._cost(group) for group in groups), Cost())
            self._rates[index] = gain / (cost.packets() + FREE)
        return self._rates[index]

    def _missing(self, index: int) -> tuple[str, ...]:
        return tuple(group for group in self._readings[index].groups() if group not in self.widened)

    def _near(self, groups: Iterable[str]) -> set[int]:
        return {index for group in groups for index in self._touching[group]}

    def _neighbours(self, groups: Iterable[str]) -> set[int]:
        """Readings whose gain or cost changes when the groups are widened."""
        beside = {group for index in self._near(groups) for group in self._readings[index].groups()}
        return self._near(beside)

    def _cost(self, group: str) -> Cost:
        return self._costs.get(group, Cost())

    def _share(self, spent: Cost) -> float:
        return spent.macs / self._macs if self._macs else 0.0
