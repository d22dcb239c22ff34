"""From QuantUnits to TOSA: one table of lowerings, one function a segment."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hexqdq.compile.product import TosaSegment
from hexqdq.compile.tosa import activation, conv, elementwise, matmul, movement, pool, reduce, transposed
from hexqdq.compile.tosa.elementwise.tables import Origin, is_better_as_table, lower_origin, origin_of
from hexqdq.compile.tosa.scope import Scope
from hexqdq.errors import CompileError
from hexqdq.ops.unit import QuantUnit, UnitGraph

LOWERINGS: Mapping[str, Callable[[QuantUnit, Scope], None]] = {
    "Conv": conv.lower,
    "ConvTranspose": transposed.lower,
    "Gemm": matmul.lower,
    "MatMul": matmul.lower,
    **elementwise.LOWERINGS,
    "Softmax": activation.lower_softmax,
    "AveragePool": pool.lower_average,
    "MaxPool": pool.lower_maximum,
    "GlobalAveragePool": reduce.lower_mean,
    "ReduceMean": reduce.lower_mean,
    "ArgMax": reduce.lower_argmax,
    **movement.LOWERINGS,
}
"""How each op type is written; a row for every row of ``ops.OPS``."""


def lower_segment(graph: UnitGraph) -> TosaSegment:
    """The segment as one TOSA function; raises CompileError where a unit's op type has no lowering."""
    scope = Scope(graph.name)
    for tensor in graph.inputs:
        scope.input(tensor)
    origins: dict[str, Origin] = {}
    for unit in graph.units:
        lowering = LOWERINGS.get(unit.op_type)
        if lowering is None:
            known = ", ".join(LOWERINGS)
            raise CompileError(unit.name, f"{unit.op_type} has no TOSA lowering; expected one of {known}")
        scope.builder.comment(f"{unit.name}: {unit.op_type}")
        origin = origin_of(unit, origins)
        if origin is not None:
            origins[unit.output.name] = origin
        if origin is not None and is_better_as_table(unit, origin):
            lower_origin(unit, scope, origin)
        else:
            lowering(unit, scope)
    text = scope.builder.text(scope.returned(graph.outputs))
    return TosaSegment(scope.builder.name, text, graph.inputs, graph.outputs, scope.builder.arguments)
