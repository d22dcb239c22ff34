"""Graphs that cut, join, resize and rearrange feature maps, as detectors and segmenters do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hexqdq.ops.unit import Array, Attribute, QuantUnit, Tensor, UnitGraph
from tests.ops.cases import U8, Case, Edge, Geometry, graph_of
from tests.ops.test_movement import movement
from tests.ops.whole.graphs import SAME, conv, edge_of, mean

Shape = tuple[int, ...]


def moved(
    op_type: str,
    sources: Sequence[Tensor],
    name: str,
    shape: Shape,
    constants: Mapping[str, Array | None] | None = None,
    attributes: Mapping[str, Attribute] | None = None,
) -> QuantUnit:
    """A movement whose output has the first source's parameters."""
    result = edge_of(sources[0]).tensor(name, shape)
    return movement(op_type, sources, [result], constants or {}, attributes)


def resized(source: Tensor, name: str, factor: int, mode: str) -> QuantUnit:
    batch, channels, height, width = source.shape
    constants = {"roi": None, "scales": np.array((1, 1, factor, factor), np.float32)}
    shape = (batch, channels, height * factor, width * factor)
    return moved("Resize", [source], name, shape, constants, {"mode": mode})


def joined(sources: Sequence[Tensor], name: str, axis: int = 1) -> QuantUnit:
    shape = list(sources[0].shape)
    shape[axis] = sum(source.shape[axis] for source in sources)
    return moved("Concat", sources, name, tuple(shape), {}, {"axis": axis})


def pyramid() -> UnitGraph:
    """Two scales joined after both kinds of upsampling, split again, padded and spread to pixels."""
    x = U8.tensor("x", (1, 3, 8, 8))
    fine = conv(x, "fine", Geometry(3, 8, (8, 8), pads=SAME))
    coarse = conv(fine.output, "coarse", Geometry(8, 8, (8, 8), pads=SAME, strides=(2, 2)), seed=1)
    near = resized(coarse.output, "near", 2, "nearest")
    smooth = resized(coarse.output, "smooth", 2, "linear")
    both = joined((fine.output, near.output, smooth.output), "both")
    edge = edge_of(both.output)
    halves = [edge.tensor(name, (1, 12, 8, 8)) for name in ("left", "right")]
    split = movement("Split", [both.output], halves, {"sizes": np.array((12, 12))}, {"axis": 1})
    pads = np.array((0, 0, 1, 1, 0, 0, 1, 1))
    padded = moved("Pad", [halves[0]], "padded", (1, 12, 10, 10), {"pads": pads}, {"mode": "reflect"})
    wide = conv(padded.output, "wide", Geometry(12, 8, (10, 10)), None, 2)
    pixels = moved("DepthToSpace", [wide.output], "pixels", (1, 2, 16, 16), {}, {"blocksize": 2, "mode": "CRD"})
    last = conv(pixels.output, "y", Geometry(2, 4, (16, 16), pads=SAME), None, 3)
    gate = mean(halves[1], "gate")
    return graph_of(fine, coarse, near, smooth, both, split, padded, wide, pixels, last, gate, name="pyramid")


def focus() -> UnitGraph:
    """Every second pixel to channels, as strided slices and a Concat."""
    x = U8.tensor("x", (1, 3, 8, 8))
    pieces = []
    for index, (row, column) in enumerate(((0, 0), (1, 0), (0, 1), (1, 1))):
        window = {"starts": (row, column), "ends": (8, 8), "axes": (2, 3), "steps": (2, 2)}
        constants = {name: np.array(numbers) for name, numbers in window.items()}
        pieces.append(moved("Slice", [x], f"piece{index}", (1, 3, 4, 4), constants))
    both = joined([piece.output for piece in pieces], "both")
    return graph_of(*pieces, both, conv(both.output, "y", Geometry(12, 8, (4, 4), pads=SAME)), name="focus")


def detector_tail() -> UnitGraph:
    """Heads of two scales, flattened without their channels, joined and turned."""
    x = U8.tensor("x", (1, 4, 4, 6))
    heads, flat = [], []
    for index, size in enumerate(((4, 6), (2, 3))):
        geometry = Geometry(4, 5, (4, 6), (1, 1), strides=(index + 1, index + 1))
        heads.append(conv(x, f"head{index}", geometry, None, index))
        shape = (1, 5, size[0] * size[1])
        flat.append(moved("Reshape", [heads[-1].output], f"flat{index}", shape, {"to": np.array(shape)}))
    every = joined([unit.output for unit in flat], "every", 2)
    turned = moved("Transpose", [every.output], "y", (1, 30, 5), {}, {"perm": (0, 2, 1)})
    return graph_of(*heads, *flat, every, turned, name="detector_tail")


def pooled_branch() -> UnitGraph:
    """A global mean spread over the map again and joined to it, with axes of one taken out and put back."""
    x = Edge(scale=0.02, zero_point=30).tensor("x", (1, 4, 4, 6))
    body = conv(x, "body", Geometry(4, 8, (4, 6), (1, 1)))
    whole = mean(body.output, "whole")
    squeezed = moved("Squeeze", [whole.output], "squeezed", (1, 8), {"axes": np.array((2, 3))})
    again = moved("Unsqueeze", [squeezed.output], "again", (1, 8, 1, 1), {"axes": np.array((2, 3))})
    constants = {"roi": None, "scales": None, "sizes": np.array((1, 8, 4, 6))}
    spread = moved("Resize", [again.output], "spread", (1, 8, 4, 6), constants, {"mode": "linear"})
    both = joined((body.output, spread.output), "both")
    return graph_of(body, whole, squeezed, again, spread, both, conv(both.output, "y", Geometry(16, 4, (4, 6), (1, 1))),
                    name="pooled_branch")  # fmt: skip


PYRAMIDS = (pyramid(), focus(), detector_tail(), pooled_branch())
CASES = tuple(Case(graph.name, graph) for graph in PYRAMIDS)
