"""Second moments of what layers read, summed sample by sample.

    H = E[x x^T] - E[x] E[x]^T   or   H = E[x x^T]

where x is the vector of quantized inputs at one position. The first leaves out what the mean error costs,
for layers whose bias takes that error up. Sums are of integers and stay below 2**53 (in float32, block by
block, below 2**24), so they are the same in any order and on any number of threads.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from threading import Lock
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from hexqdq import numerics
from hexqdq.qtypes import QuantParams
from hexqdq.quantize.calibration.calibrate import Progress, Results, Runner, Sample
from hexqdq.quantize.repair.rounding.exact import Reals
from hexqdq.quantize.repair.rounding.layers import Layer, Seen

Array = NDArray[Any]

POSITIONS = 256
"""Places that a layer is looked at in one sample."""
NARROW_BITS, KEPT_BITS = 8, 12
"""Inputs of more bits than NARROW_BITS count by KEPT_BITS of them."""
_BLOCK = 256
"""Products of 8-bit differences that float32 sums exactly: 256 * 255**2 < 2**24."""


class Moments:
    """Sums over integer vectors [groups, positions, k]; several threads may add."""

    def __init__(self, params: QuantParams) -> None:
        self._params = params
        self._is_narrow = params.dtype.bits <= NARROW_BITS
        self._coarser = 0 if self._is_narrow else params.dtype.bits - KEPT_BITS
        self._count = 0
        self._sum: Reals = np.zeros(1)
        self._products: Reals = np.zeros(1)
        self._lock = Lock()

    def add(self, vectors: Array) -> None:
        """``vectors`` are steps from the zero point."""
        products: Reals = np.zeros(1)
        kept = vectors if self._is_narrow else numerics.whole(np.ldexp(vectors.astype(np.float64), -self._coarser))
        for start in range(0, kept.shape[1], _BLOCK):
            block = kept[:, start : start + _BLOCK]
            products = products + np.swapaxes(block, 1, 2) @ block
        sums = kept.sum(axis=1, dtype=np.float64)
        with self._lock:
            self._count += kept.shape[1]
            self._sum = self._sum + sums
            self._products = self._products + products

    def hessian(self, centred: bool) -> Reals:
        """[groups, k, k] in real units."""
        products, mean = self._products / self._count, self._sum / self._count
        if centred:
            products = products - mean[:, :, None] * mean[:, None, :]
        return np.asarray(products * np.ldexp(self._params.scale[0], self._coarser) ** 2)


def collect(
    model: ir.Model, layers: Iterable[Layer], samples: Iterable[Sample], progress: Progress | None = None
) -> dict[Seen, Moments]:
    """The moments of what the layers see in the float model."""
    watched: dict[str, dict[Seen, Layer]] = {}
    for layer in layers:
        watched.setdefault(layer.value, {})[layer.seen] = layer
    found = {seen: Moments(layer.params) for seeing in watched.values() for seen, layer in seeing.items()}

    def add(index: int, results: Results) -> None:
        for name, values in results:
            _add(values, watched[name].values(), found)

    for _ in Runner(model, tuple(watched)).each(samples, add, progress):
        pass
    return found


def _add(values: Array, layers: Iterable[Layer], found: dict[Seen, Moments]) -> None:
    """Adds a sample's values of one tensor; which places are looked at follows from the values alone."""
    seed = zlib.crc32(np.ascontiguousarray(values).data.cast("B"))
    integers: dict[QuantParams, Array] = {}
    for layer in layers:
        if layer.params not in integers:
            integers[layer.params] = _steps(values, layer.params)
        vectors = layer.vectors(integers[layer.params], POSITIONS, np.random.default_rng(seed))
        if vectors.size:
            found[layer.seen].add(vectors)


def _steps(values: Array, params: QuantParams) -> Array:
    """Quantized values as steps from the zero point, exact in float32."""
    return numerics.quantize(values, params).astype(np.float32) - np.float32(params.zero_point[0])
