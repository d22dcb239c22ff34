"""From QuantUnits to TOSA: one table of lowerings, one function a segment."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hexqdq.compile.product import TosaSegment
from hexqdq.compile.tosa import activation, conv, elementwise, matmul, pool, shape
from hexqdq.compile.tosa.scope import Scope
from hexqdq.errors import CompileError
from hexqdq.ops.unit import QuantUnit, UnitGraph

LOWERINGS: Mapping[str, Callable[[QuantUnit, Scope], None]] = {
    "Conv": conv.lower,
    "Gemm": matmul.lower,
    "MatMul": matmul.lower,
    "Add": elementwise.lower_add,
    "Relu": elementwise.lower_clip,
    "Clip": elementwise.lower_clip,
    "Softmax": activation.lower_softmax,
    "GlobalAveragePool": pool.lower_mean,
    "AveragePool": pool.lower_mean,
    "Reshape": shape.lower_reshape,
    "Flatten": shape.lower_reshape,
    "Transpose": shape.lower_transpose,
}
"""How each op type is written; a row for every row of ``ops.OPS``."""


def lower_segment(graph: UnitGraph) -> TosaSegment:
    """The segment as one TOSA function; raises CompileError where a unit's op type has no lowering."""
    scope = Scope(graph.name)
    for tensor in graph.inputs:
        scope.input(tensor)
    for unit in graph.units:
        lowering = LOWERINGS.get(unit.op_type)
        if lowering is None:
            known = ", ".join(LOWERINGS)
            raise CompileError(unit.name, f"{unit.op_type} has no TOSA lowering; expected one of {known}")
        scope.builder.comment(f"{unit.name}: {unit.op_type}")
        lowering(unit, scope)
    text = scope.builder.text(scope.returned(graph.outputs))
    return TosaSegment(scope.builder.name, text, graph.inputs, graph.outputs, scope.builder.arguments)
