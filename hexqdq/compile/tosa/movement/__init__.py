"""Lowerings of the data movements."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hexqdq.compile.tosa.movement import blocks, pieces, resize, shape
from hexqdq.compile.tosa.scope import Scope
from hexqdq.ops.unit import QuantUnit

LOWERINGS: Mapping[str, Callable[[QuantUnit, Scope], None]] = {
    "Reshape": shape.lower_reshape,
    "Flatten": shape.lower_reshape,
    "Squeeze": shape.lower_reshape,
    "Unsqueeze": shape.lower_reshape,
    "Transpose": shape.lower_transpose,
    "Slice": pieces.lower_slice,
    "Split": pieces.lower_split,
    "Concat": pieces.lower_concat,
    "Pad": pieces.lower_pad,
    "DepthToSpace": blocks.lower,
    "SpaceToDepth": blocks.lower,
    "Resize": resize.lower,
}
