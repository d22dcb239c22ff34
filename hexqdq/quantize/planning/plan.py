"""Groups the tensors that share parameters and says which values get them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from hexqdq.ops.traits import QuantRow, Trait
from hexqdq.qtypes import QuantParams
from hexqdq.quantize.planning.given import given_params, is_restored_constant
from hexqdq.quantize.planning.graph import constant, input_at, is_float, results, spec_of
from hexqdq.quantize.planning.select import Selection

Range = tuple[float, float]


class Groups:
    """Union-find over value names."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def find(self, name: str) -> str:
        """The representative of the name's group; a name of its own until joined."""
        root = name
        while self._parent.get(root, root) != root:
            root = self._parent[root]
        while self._parent.get(name, root) != root:
            self._parent[name], name = root, self._parent[name]
        return root

    def join(self, left: str, right: str) -> None:
        """Makes two names share their parameters; the first one's representative stays."""
        self._parent[self.find(right)] = self.find(left)


@dataclass(frozen=True)
class Plan:
    """``values`` are the computed values that get a Q and a DQ, each with its group's representative.

    ``reads`` lists per node the input positions that take quantized activations (computed or
    constant), ``writes`` the groups of its results, or of what a node that gives integers reads, which
    are all of one type; ``movements`` are the data movements on quantized values, ``still`` the others.
    ``fixed`` maps groups whose range an op knows to scale and zero point as for u8. ``held`` are groups
    with the ranges of the constants that movements put among their values. ``given`` are the parameters
    of values that came with a Q or a DQ; ``complete`` are the nodes all of whose values did.
    """

    values: Mapping[str, str]
    reads: Mapping[ir.Node, tuple[int, ...]]
    writes: Mapping[ir.Node, tuple[str, ...]]
    movements: tuple[ir.Node, ...]
    still: tuple[ir.Node, ...]
    fixed: Mapping[str, tuple[float, int]]
    held: tuple[tuple[str, Range], ...] = ()
    given: Mapping[str, QuantParams] = field(default_factory=dict)
    complete: frozenset[ir.Node] = frozenset()


def plan(selection: Selection) -> Plan:
    """The plan of a selection: quantized ops mark values, movements carry marks along."""
    reads = {node: _activation_inputs(node) for node in (*selection.ends, *selection.indices)}
    marked = [value for node, indices in reads.items() for value in _computed(node, indices)]
    marked += selection.results()
    given = given_params(graph) if (graph := _graph(selection)) is not None else {}
    groups = _groups(selection, given)
    moving = _moving(selection, groups, (*map(_name, marked), *given))
    marked += [value for node in moving for value in _moved(node)]
    written = {node: (end, *selection.further[node]) for node, end in selection.ends.items()}
    written |= {node: tuple(results(node)) for node in moving}
    written |= {node: tuple(_computed(node, reads[node])) for node in selection.indices}
    reads |= {node: _data_positions(node) for node in moving}
    made = {node: [*_computed(node, indices), *written.get(node, ())] for node, indices in reads.items()}
    return Plan(
        values={_name(value): groups.find(_name(value)) for value in marked},
        reads=reads,
        writes={node: tuple(groups.find(_name(value)) for value in values) for node, values in written.items()},
        movements=moving,
        still=tuple(node for node in selection.movements if node not in moving),
        fixed=_fixed(selection, groups),
        held=tuple(entry for node in moving for entry in _held(node, groups)),
        given=given,
        complete=frozenset(n for n, values in made.items() if all(_name(value) in given for value in values)),
    )


def _graph(selection: Selection) -> ir.Graph | None:
    nodes = (*selection.ends, *selection.indices, *selection.movements)
    graph = nodes[0].graph if nodes else None
    return graph if isinstance(graph, ir.Graph) else None


def _groups(selection: Selection, given: Mapping[str, QuantParams]) -> Groups:
    """Values that movements tie together.

    Values whose range their op knows, or that came with parameters, join others with the same only: a
    Concat of probabilities and of something else rescales the probabilities.
    """
    groups = Groups()
    for node in selection.ends:
        for position, outputs in _spec(node).ties:
            tied = [*_computed(node, (position,)), *(v for i, v in enumerate(node.outputs) if i in outputs and v.name)]
            _join(groups, tied)
    mixing = [node for node in selection.movements if len(_data_positions(node)) > 1]
    for node in selection.movements:
        if node not in mixing:
            _join(groups, _moved(node))
    for node in mixing:
        known: dict[str, object] = {**_fixed(selection, groups)}
        known |= {groups.find(name): params for name, params in given.items()}
        values = _moved(node)
        ranges = {known.get(groups.find(_name(value))) for value in _computed(node, _data_positions(node))}
        free = [value for value in values if groups.find(_name(value)) not in known]
        _join(groups, values if len(ranges) == 1 else free)
    return groups


def _join(groups: Groups, values: Sequence[ir.Value]) -> None:
    for value in values[1:]:
        groups.join(_name(values[0]), _name(value))


def _moving(selection: Selection, groups: Groups, marked: Iterable[str]) -> tuple[ir.Node, ...]:
    """The movements that reach a quantized value, directly or through each other."""
    live = {groups.find(name) for name in marked}
    waiting, found = list(selection.movements), list[ir.Node]()
    while reached := [n for n in waiting if not live.isdisjoint(groups.find(_name(v)) for v in _moved(n))]:
        live |= {groups.find(_name(value)) for node in reached for value in _moved(node)}
        found += reached
        waiting = [node for node in waiting if node not in reached]
    return tuple(node for node in selection.movements if node in found)


def _spec(node: ir.Node) -> QuantRow:
    spec = spec_of(node)
    assert spec is not None
    return spec


def _data_positions(node: ir.Node) -> tuple[int, ...]:
    return _spec(node).data_positions(len(node.inputs))


def _moved(node: ir.Node) -> list[ir.Value]:
    """A movement's computed data, then its outputs."""
    return [*_computed(node, _data_positions(node)), *results(node)]


def _held(node: ir.Node, groups: Groups) -> Iterator[tuple[str, Range]]:
    """The ranges of constants among a movement's data."""
    for index in _data_positions(node):
        values = constant(input_at(node, index))
        if values is not None and values.size:
            yield groups.find(_name(results(node)[0])), (float(values.min()), float(values.max()))


def _activation_inputs(node: ir.Node) -> tuple[int, ...]:
    """Positions of the data inputs, and of weights that are computed."""
    spec = _spec(node)
    indices = [index for index in spec.data_positions(len(node.inputs)) if input_at(node, index) is not None]
    weighted = spec.trait in (Trait.CONTRACTION, Trait.NORMALIZATION)
    weights = input_at(node, 1)
    if weighted and is_float(weights) and constant(weights) is None and not is_restored_constant(weights):
        indices.append(1)
    return tuple(dict.fromkeys(indices))


def _computed(node: ir.Node, indices: Iterable[int]) -> list[ir.Value]:
    values = (input_at(node, index) for index in indices)
    computed = (value for value in values if value is not None and constant(value) is None)
    return [value for value in computed if not is_restored_constant(value)]


def _fixed(selection: Selection, groups: Groups) -> dict[str, tuple[float, int]]:
    fixed = {}
    for node, end in selection.ends.items():
        spec = spec_of(node)
        if spec is not None and spec.fixed_output is not None:
            fixed[groups.find(_name(end))] = spec.fixed_output
    return fixed


def _name(value: ir.Value | None) -> str:
    assert value is not None and value.name is not None
    return value.name
