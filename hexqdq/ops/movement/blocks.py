"""Channels to blocks of pixels and back: DepthToSpace and SpaceToDepth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq.errors import QuantizationError
from hexqdq.ops.movement.limits import LIMITS
from hexqdq.ops.spec import AttributeIn, OpSpec, RankIn
from hexqdq.ops.traits import Trait
from hexqdq.ops.unit import QuantUnit

Array = NDArray[Any]
Factors = tuple[str, ...]


@dataclass(frozen=True)
class BlockPlan:
    """Every dimension of input and output as factors by name, outermost first, and the factors' sizes."""

    sizes: dict[str, int]
    source: tuple[Factors, ...]
    result: tuple[Factors, ...]


def plan(unit: QuantUnit) -> BlockPlan:
    """The factors: ``down`` and ``right`` are the pixel's place in its block."""
    size = unit.attributes["blocksize"]
    assert isinstance(size, int)
    split = unit.op_type == "DepthToSpace"
    batch, channels, height, width = (unit.input(0) if split else unit.output).shape
    sizes = {"batch": batch, "channel": channels // (size * size), "down": size, "right": size}
    sizes |= {"row": height, "column": width}
    blocks_first = unit.attributes.get("mode", "DCR") == "DCR"
    deep = ("down", "right", "channel") if blocks_first else ("channel", "down", "right")
    packed: tuple[Factors, ...] = (("batch",), deep, ("row",), ("column",))
    spread: tuple[Factors, ...] = (("batch",), ("channel",), ("row", "down"), ("column", "right"))
    return BlockPlan(sizes, packed, spread) if split else BlockPlan(sizes, spread, packed)


def reference(unit: QuantUnit, inputs: Sequence[Array]) -> list[Array]:
    """Dimensions split into factors, reordered and joined."""
    constants = plan(unit)
    before = [name for factors in constants.source for name in factors]
    after = [name for factors in constants.result for name in factors]
    split = inputs[0].reshape([constants.sizes[name] for name in before])
    moved = split.transpose([before.index(name) for name in after])
    return [np.ascontiguousarray(moved).reshape(unit.output.shape)]


def check(unit: QuantUnit) -> None:
    """Raises QuantizationError where the element count changes."""
    if unit.input(0).size != unit.output.size:
        raise QuantizationError(unit.name, f"{unit.input(0).size} elements in, {unit.output.size} out")


SPECS = (
    OpSpec(
        op_type="DepthToSpace",
        trait=Trait.MOVEMENT,
        limits=(*LIMITS, RankIn(0, (4,)), AttributeIn("mode", ("DCR", "CRD"))),
        reference=reference,
        check=check,
        summary="channels to blocks of pixels, in both orders of channels",
    ),
    OpSpec(
        op_type="SpaceToDepth",
        trait=Trait.MOVEMENT,
        limits=(*LIMITS, RankIn(0, (4,))),
        reference=reference,
        check=check,
        summary="blocks of pixels to channels",
    ),
)
