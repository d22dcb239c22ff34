"""From a TOSA segment to the nodes that kernels are written for."""

from __future__ import annotations

from collections.abc import Callable

from hexqdq.compile.linalg.channels import padded_channels
from hexqdq.compile.linalg.function import read_function
from hexqdq.compile.linalg.fuse import fused, live, simplified_function
from hexqdq.compile.linalg.lower import lowered
from hexqdq.compile.linalg.nest import Function
from hexqdq.compile.product import TosaSegment

PASSES: tuple[Callable[[Function], Function], ...] = (
    live,
    padded_channels,  # before loops merge: rows of channels must still be recognisable
    simplified_function,
    fused,  # on merged loops, so that reshapes between operations do not stand in the way
    simplified_function,
)


def lower_to_nodes(segment: TosaSegment) -> tuple[Function, str]:
    """The segment's nodes, and the linalg text they were read from."""
    with lowered(segment.name, segment.text) as module:
        text = str(module)
        function = read_function(module, segment)
    for step in PASSES:
        function = step(function)
    return function, text
