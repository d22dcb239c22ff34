"""What is rounded together: the layers that read one weight tensor, in groups that memory holds at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import onnx_ir as ir

from hexqdq import numerics
from hexqdq.quantize.draft import Draft
from hexqdq.quantize.planning.encodings import Encodings
from hexqdq.quantize.planning.graph import constant, input_at
from hexqdq.quantize.planning.plan import Plan, plan
from hexqdq.quantize.planning.select import Selection, select
from hexqdq.quantize.repair.rounding.exact import Reals
from hexqdq.quantize.repair.rounding.layers import Layer, Seen, layer_of
from hexqdq.quantize.repair.rounding.moments import Moments
from hexqdq.quantize.repair.rounding.problem import Problem, damped
from hexqdq.quantize.writing.contractions import bias_place, has_constant_weights, quantize_contraction
from hexqdq.quantize.writing.weights import QuantizedConstant

MOMENT_BYTES = 1 << 28
"""What the second moments held at once may take; those of one unit take what they take."""


@dataclass(frozen=True, eq=False)
class Unit:
    """Layers that read one weight tensor and round it the same way; ``start`` is how they do so far.

    ``centred`` where a bias takes up the mean error.
    """

    layers: tuple[Layer, ...]
    source: ir.Value
    start: QuantizedConstant
    centred: bool

    @cached_property
    def moment_bytes(self) -> dict[Seen, int]:
        """What the moments of the layers take."""
        shape = self.layers[0].rows(self.start.values).shape
        return {layer.seen: 8 * shape[0] * shape[2] ** 2 for layer in self.layers}

    def problem(self, moments: Mapping[Seen, Moments], damping: float) -> Problem:
        """What to minimise; symmetric weights keep to a symmetric range."""
        layer, params = self.layers[0], self.start.params
        weights = constant(self.source)
        assert weights is not None
        origin = numerics.dequantize(np.zeros_like(self.start.values), params).astype(np.float64)
        steps = numerics.dequantize(np.ones_like(self.start.values), params).astype(np.float64) - origin
        low = -params.dtype.high if params.is_symmetric and params.dtype.is_signed else params.dtype.low
        hessian: Reals = sum((moments[one.seen].hessian(self.centred) for one in self.layers), start=np.zeros(1))
        return Problem(
            weights=layer.rows(weights.astype(np.float64)),
            steps=layer.rows(steps),
            zeros=layer.rows(numerics.whole(-origin / steps)),
            start=layer.rows(self.start.values.astype(np.float64)),
            bounds=(low, params.dtype.high),
            hessian=damped(hessian, damping),
        )

    def rounded(self, rows: Reals) -> QuantizedConstant:
        """The weights of integer rows."""
        values = self.layers[0].weights(rows, self.start.values.shape)
        return QuantizedConstant(values.astype(self.start.values.dtype), self.start.params)


def units(draft: Draft) -> tuple[Unit, ...]:
    """Everything of a draft whose weights can be rounded otherwise, in the order of the graph."""
    selection = select(draft.imported.model.graph, draft.recipe)
    made = plan(selection)
    encodings = draft.encodings(made)
    found: dict[object, Unit] = {}
    for node in selection.ends:
        if not _has_own_weights(node, made):
            continue
        one = _unit(node, draft, selection, encodings)
        if one is not None:
            (layer,) = one.layers
            key = (one.source.name, one.start.params, one.centred, layer.transposed, layer.window)
            held = found.get(key, replace(one, layers=()))
            found[key] = replace(held, layers=(*held.layers, layer))
    return tuple(found.values())


def _has_own_weights(node: ir.Node, made: Plan) -> bool:
    """Whether a contraction of quantized data has constant weights that are not theirs to give."""
    data = input_at(node, 0)
    if node in made.complete or data is None or str(data.name) not in made.values:
        return False
    return has_constant_weights(node) and 1 not in made.reads[node]


def _unit(node: ir.Node, draft: Draft, selection: Selection, encodings: Encodings) -> Unit | None:
    data, source = input_at(node, 0), input_at(node, 1)
    assert data is not None and source is not None
    read = encodings.read(node, data)
    layer = layer_of(node, read)
    if layer is None or not source.const_value or not source.const_value.size:
        return None
    start = quantize_contraction(node, selection, draft, read.scale[0], read.dtype).weights
    centred = draft.recipe.bias_correct and constant(input_at(*bias_place(node, selection))) is not None
    return Unit((layer,), source, start, centred)


def packed(everything: Iterable[Unit]) -> Iterator[list[Unit]]:
    """The units in groups whose moments take at most MOMENT_BYTES."""
    group: list[Unit] = []
    held: dict[Seen, int] = {}
    for unit in everything:
        together = held | unit.moment_bytes
        if group and sum(together.values()) > MOMENT_BYTES:
            yield group
            group, together = [], unit.moment_bytes
        group, held = [*group, unit], together
    if group:
        yield group
