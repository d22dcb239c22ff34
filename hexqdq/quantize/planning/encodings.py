"""The parameters of every group, in its own element type and in those that it is read in.

A node with quantized results computes in one type, that of its results' group. A value is stored once,
in its own group's type; a node of another type reads a converted copy. A copy of no fewer bits covers the
same range, one of 8 bits of a wider value the range that suits 8 bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType

import onnx_ir as ir

from hexqdq import numerics
from hexqdq.qtypes import QType, QuantParams
from hexqdq.quantize.planning.choices import Choices
from hexqdq.quantize.planning.plan import Plan, Range

MIN_SCALE = 2.0**-60
"""Scales below it would make the product of two scales vanish in float32."""
NARROW_BITS = 8


@dataclass(frozen=True, eq=False)
class Encodings:
    """``groups`` are parameters by the representative of a group, ``narrow`` those of 8-bit copies by type."""

    plan: Plan
    groups: Mapping[str, QuantParams]
    narrow: Mapping[QType, Mapping[str, QuantParams]]

    @property
    def are_narrow(self) -> bool:
        """Whether all are of 8 bits."""
        return all(params.dtype.bits == NARROW_BITS for params in self.groups.values())

    def of(self, value: ir.Value | None) -> QuantParams:
        """What a planned value is stored in."""
        assert value is not None
        name = str(value.name)
        return self.plan.given.get(name) or self.groups[self.plan.values[name]]

    def type_of(self, node: ir.Node) -> QType | None:
        """The type that a node computes in; None where it gives integers and reads any."""
        written = self.plan.writes.get(node)
        return self.groups[written[0]].dtype if written else None

    def read(self, node: ir.Node, value: ir.Value | None) -> QuantParams:
        """What a node reads a planned value in."""
        own, dtype = self.of(value), self.type_of(node)
        if dtype is None or dtype is own.dtype or node in self.plan.complete:
            return own
        assert value is not None
        if dtype.bits < own.dtype.bits and str(value.name) not in self.plan.given:
            return self.narrow[dtype][self.plan.values[str(value.name)]]
        return converted(own, dtype)


def encodings(
    made: Plan,
    ranges: Mapping[str, Range],
    types: Mapping[str, QType],
    default: QType,
    wide_ranges: Mapping[str, Range] | None = None,
    choices: Choices = Choices(),  # noqa: B008 - frozen
) -> Encodings:
    """The encodings of a plan.

    ``types`` are by value name and hold for the value's whole group, ``default`` elsewhere; ``wide_ranges``
    stand above ``ranges`` in groups of more than 8 bits, ``choices`` above all.
    """
    chosen = group_types(made, types, default, choices.types)
    narrow = group_params(made, ranges, chosen, choices.ranges)
    wide = group_params(made, {**ranges, **(wide_ranges or {})}, chosen, choices.ranges)
    groups = {group: (wide if chosen[group].bits > NARROW_BITS else narrow)[group] for group in chosen}
    kinds = {dtype for dtype in chosen.values() if dtype.bits == NARROW_BITS}
    return Encodings(made, groups, {dtype: group_params(made, ranges, dtype, choices.ranges) for dtype in kinds})


def group_types(
    made: Plan, types: Mapping[str, QType], default: QType, choices: Mapping[str, QType] = MappingProxyType({})
) -> dict[str, QType]:
    """The type of every group: the widest that one of its values has, and one for all results of a node.

    The last of ``choices`` stands above it.
    """
    found: dict[str, QType] = {}
    for name, group in made.values.items():
        if name in types:
            found[group] = _wider(found.get(group), types[name])
    chosen = {group: found.get(group, default) for group in made.values.values()}
    chosen |= {group: params.dtype for group, params in _given_groups(made).items()}
    several = [written for written in made.writes.values() if len(set(written)) > 1]
    while mixed := [written for written in several if len({chosen[group] for group in written}) > 1]:
        for written in mixed:
            widest = max((chosen[group] for group in written), key=lambda dtype: dtype.bits)
            chosen |= dict.fromkeys(written, widest)
    for name, dtype in choices.items():
        if name in made.values and name not in made.given:
            group = made.values[name]
            together = (written for written in several if group in written)
            chosen |= dict.fromkeys((group, *chain.from_iterable(together)), dtype)
    return chosen


def _wider(held: QType | None, other: QType) -> QType:
    return other if held is None or other.bits > held.bits else held


def group_params(
    made: Plan,
    ranges: Mapping[str, Range],
    types: QType | Mapping[str, QType],
    chosen: Mapping[str, Range] = MappingProxyType({}),
) -> dict[str, QuantParams]:
    """The parameters of every group in its type: covering the ranges of its values, or those that an op fixes.

    Those of values that are ``chosen`` stand above both.

    An op fixes them where nothing in the group reaches further by a step, as other parts of a Concat
    may; the float op itself may by an ulp.
    """
    given = _spans((group, chosen[name]) for name, group in made.values.items() if name in chosen)
    found = ((group, ranges[name]) for name, group in made.values.items() if group not in given)
    spans = given | _spans((*found, *((group, span) for group, span in made.held if group not in given)))
    params = {}
    came = _given_groups(made)
    for group, (low, high) in spans.items():
        dtype = types if isinstance(types, QType) else types[group]
        is_fixed = group in made.fixed and group not in given
        fixed = _fixed_params(made.fixed[group], dtype, low, high) if is_fixed else None
        params[group] = fixed or span_params(low, high, dtype)
        if group in came:
            params[group] = came[group] if came[group].dtype is dtype else converted(came[group], dtype)
    return params


def _given_groups(made: Plan) -> dict[str, QuantParams]:
    """The parameters that the first value of a group came with."""
    found: dict[str, QuantParams] = {}
    for name, group in made.values.items():
        if name in made.given:
            found.setdefault(group, made.given[name])
    return found


def _spans(ranges: Iterable[tuple[str, Range]]) -> dict[str, Range]:
    """What covers all ranges of each group."""
    spans: dict[str, Range] = {}
    for group, (low, high) in ranges:
        held = spans.get(group, (low, high))
        spans[group] = (min(low, held[0]), max(high, held[1]))
    return spans


def _fixed_params(known: tuple[float, int], dtype: QType, low: float, high: float) -> QuantParams | None:
    """Scale and zero point, given as for u8, in the type; None where [low, high] is outside by a step of 8 bits."""
    scale, zero_point = known
    levels = 1 << NARROW_BITS
    if not (-(zero_point + 1) * scale < low and high < (levels - zero_point + 1) * scale):
        return None
    finer = dtype.bits - NARROW_BITS
    return QuantParams.per_tensor(dtype, math.ldexp(scale, -finer), (zero_point << finer) + dtype.low)


def span_params(low: float, high: float, dtype: QType) -> QuantParams:
    """Parameters that cover [low, high] and 0; a span too small for float32 products is widened."""
    smallest = MIN_SCALE * (dtype.high - dtype.low)
    if 0 < max(high, 0.0) - min(low, 0.0) < smallest:
        high = min(low, 0.0) + smallest
    return numerics.activation_params(low, high, dtype)


def converted(params: QuantParams, dtype: QType) -> QuantParams:
    """Parameters of another type that cover the range of ``params``."""
    scale, zero_point = params.scale[0], params.zero_point[0]
    low, high = ((end - zero_point) * scale for end in (params.dtype.low, params.dtype.high))
    return span_params(low, high, dtype)
