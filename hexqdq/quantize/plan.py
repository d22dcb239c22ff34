"""Groups the tensors that share parameters and says which values get them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import onnx_ir as ir

from hexqdq import numerics
from hexqdq.ops.spec import Trait
from hexqdq.qtypes import QType, QuantParams
from hexqdq.quantize.graph import constant, input_at, is_float, spec_of
from hexqdq.quantize.select import Selection

Range = tuple[float, float]

MIN_SCALE = 2.0**-60
"""Scales below it would make the product of two scales vanish in float32."""


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
    constant), ``movements`` the data movements on quantized values, ``still`` the others. ``fixed``
    maps groups whose range an op knows to scale and zero point as for u8.
    """

    values: Mapping[str, str]
    reads: Mapping[ir.Node, tuple[int, ...]]
    movements: tuple[ir.Node, ...]
    still: tuple[ir.Node, ...]
    fixed: Mapping[str, tuple[float, int]]


def plan(selection: Selection) -> Plan:
    """The plan of a selection: quantized ops mark values, movements carry marks along."""
    reads = {node: _activation_inputs(node) for node in selection.ends}
    marked = [value for node, indices in reads.items() for value in _computed(node, indices)]
    marked += selection.ends.values()
    groups = Groups()
    for node in selection.movements:
        groups.join(_name(node.inputs[0]), _name(node.outputs[0]))
    live = {groups.find(_name(value)) for value in marked}
    moving = tuple(node for node in selection.movements if groups.find(_name(node.inputs[0])) in live)
    marked += [value for node in moving for value in (node.inputs[0], node.outputs[0]) if value is not None]
    return Plan(
        values={_name(value): groups.find(_name(value)) for value in marked},
        reads=reads | dict.fromkeys(moving, (0,)),
        movements=moving,
        still=tuple(node for node in selection.movements if groups.find(_name(node.inputs[0])) not in live),
        fixed=_fixed(selection, groups),
    )


def _activation_inputs(node: ir.Node) -> tuple[int, ...]:
    """Positions of the data inputs, and of weights that are computed."""
    spec = spec_of(node)
    assert spec is not None
    indices = list(spec.data_inputs)
    if spec.trait is Trait.CONTRACTION and is_float(input_at(node, 1)) and constant(input_at(node, 1)) is None:
        indices.append(1)
    return tuple(dict.fromkeys(indices))


def _computed(node: ir.Node, indices: Iterable[int]) -> list[ir.Value]:
    values = (input_at(node, index) for index in indices)
    return [value for value in values if value is not None and constant(value) is None]


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


def group_params(made: Plan, ranges: Mapping[str, Range], dtype: QType) -> dict[str, QuantParams]:
    """The parameters of every group: fixed by an op, else covering the ranges of its values."""
    spans: dict[str, Range] = {}
    for name, group in made.values.items():
        low, high = ranges[name]
        held = spans.get(group, (low, high))
        spans[group] = (min(low, held[0]), max(high, held[1]))
    params = {group: span_params(low, high, dtype) for group, (low, high) in spans.items()}
    for group, (scale, zero_point) in made.fixed.items():
        if group in params:
            params[group] = QuantParams.per_tensor(dtype, scale, zero_point + dtype.low)
    return params


def span_params(low: float, high: float, dtype: QType) -> QuantParams:
    """Parameters that cover [low, high] and 0; a span too small for float32 products is widened."""
    smallest = MIN_SCALE * (dtype.high - dtype.low)
    if 0 < max(high, 0.0) - min(low, 0.0) < smallest:
        high = min(low, 0.0) + smallest
    return numerics.activation_params(low, high, dtype)
