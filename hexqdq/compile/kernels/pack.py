"""Weights and biases in the layout that micro-kernels read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from hexqdq.compile.linalg.nest import Contraction

BLOCK = 32
"""Output channels in a block of packed weights."""
WORD = 4
"""Input channels in a word."""


@dataclass(frozen=True)
class PackedWeights:
    """``weights`` s8 [blocks, words, 32, 4], ``start`` s32 [blocks * 32]; ``planes`` weights add up to each one."""

    weights: NDArray[np.int8]
    start: NDArray[np.int32]
    planes: int

    @property
    def blocks(self) -> int:
        return int(self.weights.shape[0])

    @property
    def words(self) -> int:
        return int(self.weights.shape[1])


def packed_weights(part: Contraction, weights: bytes, bias: bytes | None) -> PackedWeights:
    """Weights less their zero point, and the accumulator's start.

    Activations are read as unsigned bytes, ``u = a + 128``, so the sum of ``(a - zero_point) * w``
    is that of ``u * w`` less ``(zero_point + 128) * sum(w)``, which the start contains.
    """
    values = centred(part, weights)
    planes = split(values)
    start = -(part.zero_point + 128) * values.reshape(part.channels, -1).sum(axis=1)
    if bias is not None:
        start = start + np.frombuffer(bias, "<i4")
    wide = np.concatenate([np.pad(plane, channel_padding(part, plane.ndim)) for plane in planes], axis=1)
    return PackedWeights(blocked(wide.reshape(part.channels, -1)), block_padded(start), len(planes))


def centred(part: Contraction, weights: bytes) -> NDArray[np.int64]:
    """Weights [channels, first tap, *other taps] without their zero point."""
    source = np.frombuffer(weights, np.int8)[part.weights.offset :]
    shape = (part.channels, *part.taps[:-1], part.depth)
    values = as_strided(source, shape, part.weights.strides, writeable=False)
    return np.ascontiguousarray(values).astype(np.int64) - part.weight_zero_point


def split(values: NDArray[np.int64]) -> list[NDArray[np.int8]]:
    """Planes of s8 that add up to the values."""
    planes: list[NDArray[np.int8]] = []
    rest = values
    while not planes or rest.any():
        plane = np.minimum(np.maximum(rest, -128), 127)
        planes.append(plane.astype(np.int8)[:, None])
        rest = rest - plane
    return planes


def channel_padding(part: Contraction, rank: int) -> list[tuple[int, int]]:
    return [(0, 0)] * (rank - 1) + [(0, part.taps[-1] - part.depth)]


def blocked(values: NDArray[np.int8]) -> NDArray[np.int8]:
    """[channels, k] as [blocks, k / 4, 32, 4], zeros in channels that do not exist."""
    channels, depth = values.shape
    blocks = -(-channels // BLOCK)
    full = np.zeros((blocks * BLOCK, depth), np.int8)
    full[:channels] = values
    return np.ascontiguousarray(full.reshape(blocks, BLOCK, depth // WORD, WORD).transpose(0, 2, 1, 3))


def block_padded(values: NDArray[Any]) -> NDArray[np.int32]:
    blocks = -(-len(values) // BLOCK)
    full = np.zeros(blocks * BLOCK, np.int64)
    full[: len(values)] = values
    return (full & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
