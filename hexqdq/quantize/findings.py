"""What in a model makes quantizing hard, and what was done about it: told with the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from hexqdq.import_.product import ImportedModel
from hexqdq.ops.traits import Trait
from hexqdq.quantize.calibration.visible import HIDDEN
from hexqdq.quantize.planning.graph import constant, input_at, is_float, is_movement, spec_of, weight_axis
from hexqdq.quantize.product import QdqModel
from hexqdq.quantize.writing.weights import CHANNEL_FLOOR

CUT = 1.5
"""A tail is told of where 16 bits would reach that many times further than 8 do."""
NAMED = 4


@dataclass(frozen=True)
class Finding:
    """``kind`` of difficulty, the tensor or node where it is, and what was done."""

    kind: str
    where: str
    what: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def findings(imported: ImportedModel, quantized: QdqModel) -> tuple[Finding, ...]:
    """What was found in a float model that was quantized; nothing in one that came quantized."""
    if not quantized.ranges:
        return ()
    graph = imported.model.graph
    return (
        *_tails(quantized),
        *_masks(graph),
        *_dead_channels(graph),
        *_shared(graph),
        *_fixed_ranges(graph),
    )


def _tails(quantized: QdqModel) -> Iterator[Finding]:
    """Tensors whose 8-bit range leaves out a long thin tail, the longest first."""
    found = []
    for name, (low, high) in quantized.ranges.items():
        far_low, far_high = quantized.wide_ranges.get(name, (low, high))
        ratio = (far_high - far_low) / (high - low) if high > low else 1.0
        if ratio > CUT:
            what = f"values reach [{far_low:.4g}, {far_high:.4g}]; 8 bits hold [{low:.4g}, {high:.4g}], where most are"
            found.append((ratio, Finding("wide tail", name, what)))
    yield from (entry for _, entry in sorted(found, key=lambda pair: -pair[0]))


def _masks(graph: ir.Graph) -> Iterator[Finding]:
    """What hides entries from a Softmax, by an Add or a Where before it."""
    for node in graph:
        source = _source(node.inputs[0]) if node.op_type == "Softmax" and node.domain == "" else None
        if source is None or source.op_type not in ("Add", "Where"):
            continue
        for value in source.inputs:
            least = _least_constant(value) if is_float(value) and value is not None else 0.0
            if least < HIDDEN and value is not None:
                what = f"{value.name} hides entries from {node.name} with {least:.3g}: it sets no range"
                yield Finding("mask", str(source.name), what)


def _source(value: ir.Value | None) -> ir.Node | None:
    """What computes a value, behind movements of its elements."""
    node = value.producer() if value is not None else None
    while node is not None and is_movement(node) and node.inputs[0] is not None:
        node = node.inputs[0].producer()
    return node


def _least_constant(value: ir.Value) -> float:
    """The least value of a constant, or of the constants that a computed one is made of."""
    producer = value.producer()
    held = [constant(value)] if producer is None else [constant(made_of) for made_of in producer.inputs]
    numbers = [values for values in held if values is not None and values.size and values.dtype.kind == "f"]
    return min((float(values.min()) for values in numbers), default=0.0)


def _dead_channels(graph: ir.Graph) -> Iterator[Finding]:
    """Output channels whose weights are nothing beside the others'."""
    for node in graph:
        weights, axis = constant(input_at(node, 1)), weight_axis(node)
        if weights is None or axis is None or not _is_contraction(node):
            continue
        dead = _weak(weights, axis)
        if 0 < len(dead) < weights.shape[axis]:
            what = (
                f"{len(dead)} of {weights.shape[axis]} channels have no weights ({_few(dead)}); their scale is bounded"
            )
            yield Finding("dead channel", str(node.name), what)


def _weak(weights: NDArray[Any], axis: int) -> list[int]:
    others = tuple(index for index in range(weights.ndim) if index != axis)
    largest = np.maximum(weights.max(axis=others, initial=0), -weights.min(axis=others, initial=0))
    return [int(channel) for channel in np.flatnonzero(largest <= CHANNEL_FLOOR * largest.max(initial=0))]


def _shared(graph: ir.Graph) -> Iterator[Finding]:
    """Weights and biases that several nodes read."""
    for value in graph.initializers.values():
        uses = [(use.node, use.idx) for use in value.uses()]
        if value.dtype != ir.DataType.FLOAT or len(uses) < 2:
            continue
        contractions = [node for node, index in uses if index > 0 and _is_contraction(node)]
        biases = [node for node, index in uses if index == 2 and _is_contraction(node)]
        names = _few([str(node.name) for node, _ in uses])
        if len(biases) > 1:
            yield Finding("shared bias", str(value.name), f"is added by {names}: each has it in its own scale")
        elif contractions:
            yield Finding("tied weights", str(value.name), f"are read by {names}: each has them as it reads them")


def _fixed_ranges(graph: ir.Graph) -> Iterator[Finding]:
    """Ops whose range is known, one finding per op."""
    nodes: dict[str, list[str]] = {}
    for node in graph:
        spec = spec_of(node)
        if spec is not None and spec.fixed_output is not None:
            nodes.setdefault(node.op_type, []).append(str(node.name))
    for op_type, names in nodes.items():
        yield Finding("fixed range", op_type, f"has the range of its op, whatever was seen, at {_few(names)}")


def _is_contraction(node: ir.Node) -> bool:
    spec = spec_of(node)
    return spec is not None and spec.trait is Trait.CONTRACTION


def _few(names: Sequence[object]) -> str:
    shown = ", ".join(map(str, names[:NAMED]))
    return f"{shown} and {len(names) - NAMED} more" if len(names) > NAMED else shown
