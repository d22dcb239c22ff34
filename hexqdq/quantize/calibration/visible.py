"""Ranges of what enters a Softmax: only what it can tell apart.

Of a row with the maximum M, an entry z has the weight exp(z - M) before the row is divided by its sum.
Entries below ``M - ln(n * 2**13)`` in a row of n have together less than ``2**-13`` of it, which no 8 bits
show; 16 bits need ``2**21``. With the smallest M over all rows of all samples the bound holds everywhere:

    low = min over rows (max over the row) - ln(n * 2**13)

What lies below saturates there when it is quantized, and stays invisible. So do masks: an additive mask of
-1e4 or -3.4e38 sets no range, neither of the sum, nor its own, nor do the scores that it hides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from hexqdq.quantize.calibration.ranges import Ranges
from hexqdq.quantize.planning.graph import constant
from hexqdq.quantize.planning.plan import Plan, Range

Array = NDArray[Any]

INVISIBLE, INVISIBLE_WIDE = 2.0**-13, 2.0**-21
"""Shares of a row that everything below the bound has at most, for types of 8 and of 16 bits."""
HIDDEN = -100.0
"""An addend below it hides its entry: exp(-100) is 0 beside anything."""
NO_ROW = -1000.0
"""A row whose maximum is below it is masked whole."""
AXES_AS_INPUT = 18
"""The opset since which ReduceMax takes its axes as an input."""


@dataclass(frozen=True, eq=False)
class Attention:
    """A Softmax, what enters it and, where that is a sum, the addends, each with the other one."""

    softmax: ir.Node
    logits: ir.Value
    addends: tuple[tuple[ir.Value, ir.Value], ...] = ()
    add: ir.Node | None = None


class SoftmaxWatch:
    """Sees what softmaxes see while the model is calibrated, and bounds the ranges of that."""

    def __init__(self, model: ir.Model, made: Plan) -> None:
        self._source, self._plan = model, made
        self._found = attentions(model.graph, made)
        self.model, self._ends = _watched(model, self._found) if self._found else (model, {})
        self.names = tuple(dict.fromkeys(output for pair in self._ends.values() for output in pair))
        self._seen = dict.fromkeys(self._ends, (math.inf, -math.inf))

    def add(self, values: Mapping[str, Array]) -> None:
        """Widens the smallest and largest maximum of a row, ``NAME_rows``, and the addends' ends, ``NAME_i``."""
        for name, (smallest, largest) in self._ends.items():
            low, high = _ends(name, values[smallest], values[largest])
            held = self._seen[name]
            self._seen[name] = (min(low, held[0]), max(high, held[1]))

    def bounded(self, ranges: Ranges) -> Ranges:
        """The ranges with those of all that only softmaxes see bounded; the same ones where there is no Softmax."""
        if not self._found:
            return ranges
        seen = {name: (min(low, high), high) for name, (low, high) in self._seen.items()}
        narrow, wide = (_bounds(self._found, seen, self._plan, share) for share in (INVISIBLE, INVISIBLE_WIDE))
        for own, bounds in ((ranges.narrow, narrow), (ranges.wide, wide)):
            _bound_masks_of_masks(self._source.graph, self._plan, own, bounds)
        return Ranges(_applied(ranges.narrow, narrow, self._plan), _applied(ranges.wide, wide, self._plan))


def _applied(ranges: Mapping[str, Range], bounds: Mapping[str, Range], made: Plan) -> dict[str, Range]:
    """A range that reaches beyond its group's bounds is replaced by them."""
    changed = dict(ranges)
    for name, group in made.values.items():
        (low, high), held = ranges[name], bounds.get(group)
        if held is not None and (low < held[0] or high > held[1]):
            changed[name] = held
    return changed


def attentions(graph: ir.Graph, made: Plan) -> list[Attention]:
    """Every Softmax whose input is seen by softmaxes only."""
    found = []
    for node in graph:
        logits = node.inputs[0] if node.op_type == "Softmax" and node.domain == "" else None
        if logits is None or str(logits.name) not in made.values:
            continue
        if _seen_by(logits, made, lambda reader: reader.op_type == "Softmax"):
            found.append(_attention(node, logits, made))
    return found


def _attention(softmax: ir.Node, logits: ir.Value, made: Plan) -> Attention:
    source = _behind_movements(logits, made)
    add = source.producer()
    if add is None or add.op_type != "Add" or add.domain != "":
        return Attention(softmax, logits)
    left, right = add.inputs
    assert left is not None and right is not None
    return Attention(softmax, logits, ((left, right), (right, left)), add)


def _behind_movements(value: ir.Value, made: Plan) -> ir.Value:
    while (node := value.producer()) in made.movements and node is not None and node.inputs[0] is not None:
        value = node.inputs[0]
    return value


def _seen_by(value: ir.Value, made: Plan, allowed: Callable[[ir.Node], bool]) -> bool:
    """Whether the values of the group go to movements and allowed nodes only."""
    group = made.values[str(value.name)]
    waiting, seen = [value], set[ir.Value]()
    while waiting:
        one = waiting.pop()
        if one in seen or made.values.get(str(one.name)) != group:
            continue
        seen.add(one)
        readers = [use.node for use in one.uses()]
        if one.is_graph_output() or not all(node in made.movements or allowed(node) for node in readers):
            return False
        producer = one.producer()
        moving = [node for node in (*readers, producer) if node is not None and node in made.movements]
        waiting += [other for node in moving for other in (*node.inputs, *node.outputs) if other is not None]
    return True


def _bounds(found: list[Attention], seen: Mapping[str, Range], made: Plan, share: float) -> dict[str, Range]:
    """Per group what is visible of it at least in one Softmax."""
    adds = {one.add for one in found if one.add is not None}
    bounds: dict[str, Range] = {}
    for one in found:
        length = int(one.logits.shape.numpy()[axis_of(one)]) if one.logits.shape is not None else 1
        largest = seen[f"{one.softmax.name}_rows"]
        low = largest[0] - math.log(length / share)
        _widen(bounds, made.values[str(one.logits.name)], (low, largest[1]))
        for place, (value, _) in enumerate(one.addends):
            if str(value.name) in made.values and _seen_by(value, made, adds.__contains__):
                (own_low, own_high), other = (
                    seen[f"{one.softmax.name}_{place}"],
                    seen[f"{one.softmax.name}_{1 - place}"],
                )
                _widen(bounds, made.values[str(value.name)], (max(own_low, low - other[1]), own_high))
    return bounds


def _bound_masks_of_masks(graph: ir.Graph, made: Plan, ranges: Mapping[str, Range], bounds: dict[str, Range]) -> None:
    """What only sums that are bounded read need not reach further down than shows in them."""
    sums = [node for node in graph if node.op_type == "Add" and made.values.get(str(node.outputs[0].name)) in bounds]
    for node in reversed(sums):
        low, _ = bounds[made.values[str(node.outputs[0].name)]]
        for value, other in zip(node.inputs, reversed(node.inputs), strict=True):
            group = made.values.get(str(value.name)) if value is not None else None
            if value is None or other is None or group is None or group in bounds:
                continue
            if _seen_by(value, made, sums.__contains__):
                own_low, own_high = ranges[str(value.name)]
                bounds[group] = (min(max(own_low, low - _highest(other, ranges)), own_high), own_high)


def _highest(value: ir.Value, ranges: Mapping[str, Range]) -> float:
    values = constant(value)
    return ranges[str(value.name)][1] if values is None else float(values.max(initial=0.0))


def _widen(bounds: dict[str, Range], group: str, span: Range) -> None:
    low, high = bounds.get(group, span)
    bounds[group] = (min(low, span[0]), max(high, span[1]))


def axis_of(one: Attention) -> int:
    attributes = one.softmax.attributes
    return attributes["axis"].as_int() if "axis" in attributes else -1


def _ends(name: str, smallest: Array, largest: Array) -> Range:
    """Rows that are masked whole do not count, nor addends that are hidden everywhere; a mask may reach to -inf."""
    if name.endswith("_rows"):
        low = high = largest[largest > NO_ROW]
    else:
        low, high = smallest[smallest < math.inf], largest[largest > -math.inf]
    return float(low.min(initial=math.inf)), float(high.max(initial=-math.inf))


def _watched(model: ir.Model, found: list[Attention]) -> tuple[ir.Model, dict[str, tuple[str, str]]]:
    """The model with the values to observe, and the names of their low and high end."""
    watched = model.clone()
    values = {str(v.name): v for v in (*watched.graph.inputs, *watched.graph.initializers.values())}
    values |= {str(v.name): v for node in watched.graph for v in node.outputs}
    extra = _Extra(watched.graph, set(values))
    names: dict[str, tuple[str, str]] = {}
    for one in found:
        softmax = str(one.softmax.name)
        rows = extra.largest(values[str(one.logits.name)], axis_of(one))
        names[f"{softmax}_rows"] = (rows, rows)
        for place, (value, other) in enumerate(one.addends):
            shown, behind = values[str(value.name)], values[str(other.name)]
            names[f"{softmax}_{place}"] = (extra.visible(shown, behind, lowest=True), extra.visible(shown, behind))
    return watched, names


class _Extra:
    """Nodes at the end of a graph that compute what is to be observed."""

    def __init__(self, graph: ir.Graph, used: set[str]) -> None:
        self.graph, self._used = graph, used

    def largest(self, value: ir.Value, axis: int) -> str:
        """The maximum along an axis."""
        assert value.shape is not None
        shape = list(value.shape.numpy())
        shape[axis] = 1
        if self.graph.opset_imports[""] < AXES_AS_INPUT:
            return str(self._op("ReduceMax", [value], shape, {"axes": [axis]}).name)
        return str(self._op("ReduceMax", [value, self._constant(np.array([axis], np.int64))], shape).name)

    def visible(self, value: ir.Value, other: ir.Value, *, lowest: bool = False) -> str:
        """The lowest or highest element where the other addend hides nothing."""
        assert value.shape is not None and other.shape is not None
        shape = np.broadcast_shapes(value.shape.numpy(), other.shape.numpy())
        limit = self._constant(np.array(HIDDEN, np.float32))
        shows = self._op("GreaterOrEqual", [other, limit], other.shape.numpy(), dtype=ir.DataType.BOOL)
        nothing = self._constant(np.array(math.inf if lowest else -math.inf, np.float32))
        chosen = self._op("Where", [shows, value, nothing], shape)
        return str(self._op("ReduceMin" if lowest else "ReduceMax", [chosen], (1,) * len(shape)).name)

    def _op(
        self,
        op_type: str,
        inputs: list[ir.Value],
        shape: Sequence[int],
        attributes: Mapping[str, Sequence[int]] | None = None,
        dtype: ir.DataType = ir.DataType.FLOAT,
    ) -> ir.Value:
        node = ir.node(op_type, inputs, dict(attributes or {}), name=self._free(f"watch_{op_type}"))
        (output,) = node.outputs
        output.name, output.type = self._free(f"watched_{op_type}"), ir.TensorType(dtype)
        output.shape = ir.Shape(tuple(shape))
        self.graph.append(node)
        return output

    def _constant(self, values: Array) -> ir.Value:
        tensor = ir.tensor(values, name=self._free("watch_constant"))
        shape = ir.Shape(values.shape)
        value = ir.Value(name=tensor.name, type=ir.TensorType(tensor.dtype), shape=shape, const_value=tensor)
        self.graph.register_initializer(value)
        return value

    def _free(self, base: str) -> str:
        name, number = base, 2
        while name in self._used:
            name, number = f"{base}_{number}", number + 1
        self._used.add(name)
        return name
