"""Gemm and MatMul with constant weights: a 1x1 CONV2D over the rows."""

from __future__ import annotations

import numpy as np

from hexqdq.compile.tosa import instructions
from hexqdq.compile.tosa.instructions import Window
from hexqdq.compile.tosa.layouts import logical
from hexqdq.compile.tosa.scope import Scope
from hexqdq.numerics import tosa_offset
from hexqdq.ops.matmul import plan
from hexqdq.ops.unit import QuantUnit

WINDOW = Window((0, 0, 0, 0), (1, 1))


def lower(unit: QuantUnit, scope: Scope) -> None:
    """``clamp(rescale(x @ w + bias))``, rows of ``x`` along the width."""
    constants = plan(unit)
    builder = scope.builder
    source = scope.operand(unit, 0, logical(len(unit.input(0).shape)))
    depth = source.shape[-1]
    rows = builder.view(source, (1, 1, unit.input(0).size // depth, depth))
    form = "oi" if unit.attributes.get("transB", 0) else "io"
    weight = builder.argument(f"{unit.input(1).name}:{form}", constants.weights.reshape(-1, 1, 1, depth))
    bias = builder.argument(f"{unit.name}:bias", constants.bias.astype(np.int32))
    zero_point = constants.input_zero_point + tosa_offset(unit.input(0).dtype)
    sums = instructions.conv2d(builder, (rows, weight, bias), (zero_point, 0), WINDOW)
    result = scope.requantized(sums, constants, unit.output)
    scope.store(unit.output, logical(len(unit.output.shape)), builder.view(result, unit.output.shape))
