"""The reference executor's heart: a unit graph computed by the ops' numpy definitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from hexqdq.errors import InputError
from hexqdq.ops import OPS
from hexqdq.ops.unit import QuantUnit, UnitGraph, as_array

Array = NDArray[Any]


def run_unit(unit: QuantUnit, inputs: list[Array]) -> list[Array]:
    """The unit's outputs from its variable inputs, in the outputs' types and shapes."""
    results = OPS[unit.op_type].reference(unit, inputs)
    return [as_array(values, tensor) for values, tensor in zip(results, unit.outputs, strict=True)]


def run(graph: UnitGraph, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """The graph's outputs by name; raises InputError where a feed is missing or of another shape."""
    values: dict[str, Array] = {}
    for tensor in graph.inputs:
        feed = feeds.get(tensor.name)
        if feed is None or feed.shape != tensor.shape or feed.dtype != tensor.dtype.numpy:
            found = "nothing" if feed is None else f"{feed.dtype} {feed.shape}"
            raise InputError(tensor.name, f"got {found}; expected {tensor.dtype.label} {tensor.shape}")
        values[tensor.name] = feed
    for unit in graph.units:
        results = run_unit(unit, [values[tensor.name] for tensor in unit.variable_inputs()])
        values.update(zip((tensor.name for tensor in unit.outputs), results, strict=True))
    return {tensor.name: values[tensor.name] for tensor in graph.outputs}
