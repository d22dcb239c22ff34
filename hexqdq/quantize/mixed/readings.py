"""Where activations are read: what 8 or 16 bits of a tensor group make a difference to.

A node computes in the type of its output's group and reads its inputs in that type, so 16 bits of a
group help those of its readers that have 16 bits themselves; the others read an 8-bit copy. The error
of a quantized model is thus made at readings: pairs of a group and the group that its readers write.
Groups that one node writes together, as a recurrence does, have one type and count as one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import onnx_ir as ir

from hexqdq.qtypes import QuantParams
from hexqdq.quantize.draft import Draft
from hexqdq.quantize.mixed.cost import Cost, cost_of
from hexqdq.quantize.planning.encodings import group_params, span_params
from hexqdq.quantize.planning.graph import constant, results
from hexqdq.quantize.planning.plan import Groups, plan
from hexqdq.quantize.planning.select import select

User = tuple[ir.Node, int]
"""A node and the position at which it reads."""


@dataclass(frozen=True)
class Reading:
    """A group as read by the nodes that write the group ``reader``, None for the model's outputs.

    Constants count as read by their reader's own group, whose type they are stored in.
    """

    group: str
    reader: str | None

    def groups(self) -> tuple[str, ...]:
        """The groups that need 16 bits for this reading to have them."""
        return (self.group,) if self.reader in (None, self.group) else (self.group, str(self.reader))

    def is_wide(self, widened: Collection[str]) -> bool:
        return all(group in widened for group in self.groups())


@dataclass(frozen=True, eq=False)
class Place:
    """One value at one reading, by index: its 8-bit parameters and its users, None for the model's outputs."""

    reading: int
    value: ir.Value
    params: QuantParams
    users: tuple[User, ...] | None


@dataclass(frozen=True, eq=False)
class Wiring:
    """The readings in the order of computation and where they are.

    ``members`` are the values of every group, ``costs`` what the nodes that write it do, ``makers`` the op type
    of the first of them that computes. ``wide`` are groups that have 16 bits whatever is chosen here, ``narrow``
    ones that have 8.
    """

    readings: tuple[Reading, ...]
    places: tuple[Place, ...]
    members: Mapping[str, tuple[str, ...]]
    costs: Mapping[str, Cost]
    makers: Mapping[str, str]
    wide: frozenset[str]
    narrow: frozenset[str]


def wiring(graph: ir.Graph, draft: Draft) -> Wiring:
    """The readings of a float graph as the draft plans it."""
    return _Wirer(graph, draft).wiring()


class _Wirer:
    def __init__(self, graph: ir.Graph, draft: Draft) -> None:
        self.graph, self.draft = graph, draft
        self.selection = select(graph, draft.recipe)
        self.plan = plan(self.selection)
        self.params = group_params(self.plan, draft.ranges, draft.recipe.activations, draft.choices.ranges)
        joined = Groups()
        for written in self.plan.writes.values():
            for group in written[1:]:
                joined.join(written[0], group)
        self.groups = {name: joined.find(group) for name, group in self.plan.values.items()}
        self.writes = {node: joined.find(written[0]) for node, written in self.plan.writes.items()}

    def wiring(self) -> Wiring:
        users = self._users()
        index = {reading: place for place, reading in enumerate(dict.fromkeys(reading for reading, _ in users))}
        places = tuple(
            Place(index[reading], value, self._params(value), None if readers is None else tuple(readers))
            for (reading, value), readers in users.items()
        )
        members: dict[str, list[str]] = defaultdict(list)
        for name, group in self.groups.items():
            members[group].append(name)
        everyone = {group: tuple(names) for group, names in members.items()}
        wide, narrow = self._settled()
        return Wiring(tuple(index), places, everyone, self._costs(), self._makers(), wide, narrow)

    def _users(self) -> dict[tuple[Reading, ir.Value], list[User] | None]:
        """Who reads which value at which reading, None for the model's outputs."""
        users: dict[tuple[Reading, ir.Value], list[User] | None] = {}
        for node in self.graph:
            for position in self.plan.reads.get(node, ()):
                value, reading = node.inputs[position], self._reading(node, position)
                if value is not None and reading is not None:
                    readers = users.setdefault((reading, value), [])
                    assert readers is not None
                    readers.append((node, position))
        for value in self._quantized_outputs():
            users[Reading(self.groups[str(value.name)], None), value] = None
        return users

    def _reading(self, node: ir.Node, position: int) -> Reading | None:
        """None where the node reads what needs no rounding.

        Such are integers of the group that a movement moves, and what the model came with Q and DQ of.
        """
        value, writes = node.inputs[position], self.writes.get(node)
        assert value is not None
        if constant(value) is not None:
            return None if node in self.plan.movements or writes is None else Reading(writes, writes)
        if value.name in self.plan.given:
            return None
        group = self.groups[str(value.name)]
        if writes == group and node in self.plan.movements:
            return None
        return Reading(group, writes or group)

    def _quantized_outputs(self) -> Iterator[ir.Value]:
        """The model's outputs that have a Q."""
        moved = (value for node in self.plan.movements for value in results(node))
        written = {*self.selection.results(), *moved}
        written = {value for value in written if value.name not in self.plan.given}
        return (value for value in dict.fromkeys(self.graph.outputs) if value in written)

    def _settled(self) -> tuple[frozenset[str], frozenset[str]]:
        """The groups whose type the user chose or the model came with: those of 16 bits, and the others."""
        encodings = self.draft.encodings(self.plan)
        types = {
            self.groups[name]: encodings.groups[group].dtype
            for name, group in self.plan.values.items()
            if name in self.plan.given or name in self.draft.choices.types
        }
        wide = frozenset(group for group, dtype in types.items() if dtype.bits > self.draft.recipe.activations.bits)
        return wide, frozenset(types) - wide

    def _params(self, value: ir.Value) -> QuantParams:
        values = constant(value)
        if values is None:
            return self.params[self.plan.values[str(value.name)]]
        return span_params(float(values.min()), float(values.max()), self.draft.recipe.activations)

    def _costs(self) -> dict[str, Cost]:
        costs: dict[str, Cost] = defaultdict(Cost)
        for node, group in self.writes.items():
            costs[group] += cost_of(node, self.selection.ends.get(node))
        return dict(costs)

    def _makers(self) -> dict[str, str]:
        makers: dict[str, str] = {}
        for node in self.selection.ends:
            makers.setdefault(self.writes[node], node.op_type)
        return makers
