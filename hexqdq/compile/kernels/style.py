"""What differs between targets when kernels are written: lanes, and how far accesses may reach."""

from __future__ import annotations

from dataclasses import dataclass

from hexqdq.target import Target

SLACK_BYTES = 1024
"""Bytes after every area that a kernel for Hexagon may read or write without harm."""


@dataclass(frozen=True)
class Style:
    """How a target likes its loops.

    ``vector_bytes`` is how much of the narrowest tensor one iteration takes. With ``overrun``,
    short rows are computed in whole vectors whose surplus lanes the next row overwrites; the last
    one reaches into the slack behind the tensor. ``edge_alignment`` is what inputs and outputs of
    the segment promise. ``registers`` is the number of vector registers.
    """

    arch: str
    vector_bytes: int
    registers: int
    micro_lanes: int
    overrun: bool
    edge_alignment: int
    has_vnni: bool = False


def style_of(target: Target) -> Style:
    """The style of a target row, by its features."""
    if "hvx" in target.features:
        return Style("hexagon", 128, 32, 32, True, 128)
    wide, vnni = "avx2" in target.cpu_flags, "vnni" in target.features
    return Style(target.arch, 32 if wide else 16, 32 if vnni else 16, 8 if wide else 4, False, 1, vnni)
