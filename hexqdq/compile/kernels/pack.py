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
    """``weights`` s8 [blocks, words, 32, 4] and ``start`` s32 [blocks * 32].

    A sum is ``start + sum(u * weight) - zero_point * sum(u)`` over unsigned activations ``u``;
    ``zero_point`` is 0 where the weights less their zero point are still bytes.
    """

    weights: NDArray[np.int8]
    start: NDArray[np.int32]
    zero_point: int

    @property
    def blocks(self) -> int:
        return int(self.weights.shape[0])

    @property
    def words(self) -> int:
        return int(self.weights.shape[1])


def packed_weights(part: Contraction, weights: bytes, bias: bytes | None) -> PackedWeights:
    """Weights in blocks, and the accumulator's start.

    Activations are read as unsigned bytes, ``u = a + 128``, so the sum of ``(a - zero_point) * w``
    is that of ``u * w`` less ``(zero_point + 128) * sum(w)``, which the start contains. Channels
    that only fill a word count as zero: their weight is the zero point.
    """
    values = centred(part, weights)
    start = -(part.zero_point + 128) * values.reshape(part.channels, -1).sum(axis=1)
    if bias is not None:
        start = start + np.frombuffer(bias, "<i4")
    fits = values.min() >= -128 and values.max() <= 127
    zero_point = 0 if fits else part.weight_zero_point
    padding = [(0, 0)] * (values.ndim - 1) + [(0, part.taps[-1] - part.depth)]
    full = np.pad(values + zero_point, padding, constant_values=zero_point).astype(np.int8)
    return PackedWeights(blocked(full.reshape(part.channels, -1)), block_padded(start), zero_point)


def centred(part: Contraction, weights: bytes) -> NDArray[np.int64]:
    """Weights [channels, *taps] without their zero point."""
    source = np.frombuffer(weights, np.int8)[part.weights.offset :]
    shape = (part.channels, *part.taps[:-1], part.depth)
    values = as_strided(source, shape, part.weights.strides, writeable=False)
    return np.ascontiguousarray(values).astype(np.int64) - part.weight_zero_point


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
