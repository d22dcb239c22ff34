"""Mixed precision: 16-bit activations for the few tensor groups whose 8 bits hurt the outputs most.

Sensitivity is the noise at the model's outputs (``outputs.OutputError``) that 8 bits at one place make with
everything else exact, on a few calibration samples; groups are widened greedily by noise per cost, and
points of the curve so found are run before one is chosen. (That roundings add in power and that the output
decides: Lin, Talathi, Annapureddy 2016, "Fixed Point Quantization of Deep Convolutional Networks", section
3; ranking by sensitivity against a budget: Dong et al. 2020, "HAWQ-V2: Hessian Aware trace-Weighted
Quantization of Neural Networks", section 3, by traces where this measures.)

The choice is the cheapest point whose outputs are within ``target_drop`` dB of those with 16 bits everywhere
or have SUFFICIENT dB. Where ``budget`` percent of the multiply-accumulates do not buy that, what they do buy is
taken. Only outputs that would be POOR and much WORSE than with 16 bits everywhere pass the budget, until they
are DECENT.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from hexqdq.qtypes import QType
from hexqdq.quantize.calibration.calibrate import Progress, Sample
from hexqdq.quantize.draft import Draft
from hexqdq.quantize.mixed.cost import Cost
from hexqdq.quantize.mixed.curve import Curve
from hexqdq.quantize.mixed.outputs import OutputError, decibels
from hexqdq.quantize.mixed.readings import Wiring
from hexqdq.quantize.mixed.record import MixedPrecision, Widened
from hexqdq.quantize.mixed.samples import few
from hexqdq.quantize.mixed.sensitivity import noises
from hexqdq.quantize.mixed.switchboard import Switchboard
from hexqdq.quantize.mixed.widen import Widening
from hexqdq.quantize.recipe import Recipe

SUFFICIENT = 35.0
"""dB of outputs that need no more bits: noise below a fiftieth of their amplitude."""
WORK = 1 << 38
"""Multiply-accumulates of all runs for sensitivity; an element read or written counts as ELEMENT of them."""
ELEMENT = 8
FEWEST_SAMPLES, MOST_SAMPLES = 2, 8
FEWEST_RUNS = 48

WIDER = {QType.U8: QType.U16, QType.S8: QType.S16}


def wants_mix(recipe: Recipe) -> bool:
    """Whether a recipe of 8-bit activations lets some have 16."""
    return recipe.mixed and recipe.activations in WIDER


def mix(draft: Draft, samples: Iterable[Sample], progress: Progress | None = None) -> Draft:
    """The draft with 16-bit types for what is widened, and the record of why."""
    board = Switchboard(draft)
    wired, budget = board.wiring, draft.recipe.budget / 100
    if not wired.readings:
        return draft
    count, runs = _extent(wired)
    board.take(few(samples, count))
    error, base = OutputError(board.exact), board(())
    curve = Curve(lambda groups: error(board(_narrow(wired, groups))), error(base))
    allowed = max(curve.floor * 10 ** (draft.recipe.target_drop / 10), 10 ** (-SUFFICIENT / 10))
    powers: Sequence[float] = [0.0] * len(wired.readings)
    if curve.ceiling > allowed:
        told = _told(lambda block: error(board(block), base), runs, progress)
        negligible = (allowed - curve.floor) / (2 * len(powers))
        powers = noises(told, len(powers), runs, negligible)
        curve.extend(Widening(wired, powers), budget)
    target = f"is within {draft.recipe.target_drop:g} dB of 16 bits everywhere, or has {SUFFICIENT:g} dB"
    reason = curve.choose(allowed, budget, target)
    groups = curve.groups(curve.taken)
    points = curve.points(sum(cost.packets() for cost in wired.costs.values()))
    record = MixedPrecision(reason, decibels(curve.floor), points, _widened(groups, wired, powers))
    wide = WIDER[draft.recipe.activations]
    types = {name: wide for group in sorted(groups) for name in wired.members[group]}
    return replace(draft, types={**draft.types, **types}, mixed=record)


def _narrow(wired: Wiring, groups: Collection[str]) -> list[int]:
    """The readings that stay 8 bits wide when the groups are widened."""
    wide = wired.wide | set(groups)
    return [index for index, reading in enumerate(wired.readings) if not reading.is_wide(wide)]


def _extent(wired: Wiring) -> tuple[int, int]:
    """How many samples and runs sensitivity takes: as many as WORK allows, up to a run per reading."""
    total = sum(wired.costs.values(), Cost())
    affordable = WORK // max(total.macs + ELEMENT * total.elements, 1)
    readings = len(wired.readings)
    samples = min(max(affordable // max(readings, 1), FEWEST_SAMPLES), MOST_SAMPLES)
    return samples, min(max(affordable // samples, FEWEST_RUNS), 2 * readings)


def _told(measure: Callable[[range], float], runs: int, progress: Progress | None) -> Callable[[range], float]:
    """The measure, counted."""
    done = 0

    def counted(block: range) -> float:
        nonlocal done
        noise = measure(block)
        done += 1
        if progress is not None:
            progress(min(done, runs), runs)
        return noise

    return counted


def _widened(groups: Collection[str], wired: Wiring, powers: Sequence[float]) -> tuple[Widened, ...]:
    """What is widened, the loudest first."""
    noise = dict.fromkeys(sorted(groups), 0.0)
    for reading, power in zip(wired.readings, powers, strict=True):
        if reading.group in noise:
            noise[reading.group] += power
    ordered = sorted(noise, key=lambda group: (-noise[group], group))
    return tuple(_entry(group, wired, noise[group]) for group in ordered)


def _entry(group: str, wired: Wiring, noise: float) -> Widened:
    cost, total = wired.costs.get(group, Cost()), sum(cost.macs for cost in wired.costs.values())
    percent = 100 * cost.macs / total if total else 0.0
    return Widened(group, wired.makers.get(group, "input"), decibels(noise), percent)
