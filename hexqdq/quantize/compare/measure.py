"""Measures a float model against its quantized form, tensor by tensor."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq import numerics
from hexqdq.import_.product import ImportedModel
from hexqdq.qtypes import QuantParams
from hexqdq.quantize.calibration.calibrate import Progress, Runner, Sample, counted
from hexqdq.quantize.calibration.visible import HIDDEN, NO_ROW
from hexqdq.quantize.compare.forced import forced
from hexqdq.quantize.compare.places import Place, places

Array = NDArray[Any]
Reals = NDArray[np.float64]

_CHUNK = 1 << 15


@dataclass(frozen=True)
class TensorMeasure:
    """How far a tensor of the quantized model is from the float model's, over all samples.

    ``sqnr`` is the power of the float values over that of the error, in dB, None where they are equal;
    what a mask hides from a Softmax counts nowhere. ``inherited`` is the same for the error that the float
    op makes of its quantized inputs, ``introduced`` for what the quantized op adds to it, ``own`` for the
    tensor's encoding alone, on the float model's values. ``saturated`` is the share of float values that
    the encoding cannot reach;
    ``own``, ``saturated`` and ``reach``, the encoding's range, are None where the tensor has none.
    ``types`` are the types that it is stored in and converted to. ``worst_channel`` is the channel of
    least SQNR, counted along ``axis``. ``inputs`` are the computed values that its maker reads.
    """

    tensor: str
    op_type: str
    sqnr: float | None
    introduced: float | None
    inherited: float | None
    own: float | None
    cosine: float
    saturated: float | None
    axis: int
    worst_channel: int | None
    worst_channel_sqnr: float | None
    low: float
    high: float
    reach: tuple[float, float] | None
    types: tuple[str, ...]
    inputs: tuple[str, ...]
    is_output: bool


def measure(
    exact: ImportedModel, quantized: ImportedModel, samples: Iterable[Sample], progress: Progress | None = None
) -> tuple[TensorMeasure, ...]:
    """One measure per tensor that both models have, in the order of computation.

    Streams: memory holds the activations of one sample. Raises ModelError where they have none in
    common, and CalibrationError where a sample does not fit.
    """
    sums = {place.name: _Sums(place) for place in places(exact, quantized)}
    runs = _Runs(exact, quantized, [entry.place for entry in sums.values()])
    for index, sample in enumerate(counted(samples, progress)):
        for name, values, inherited, found in runs(sample, index):
            sums[name].add(values, inherited, found)
    return tuple(entry.measure() for entry in sums.values())


class _Runs:
    """Float, forced and quantized model side by side."""

    def __init__(self, exact: ImportedModel, quantized: ImportedModel, compared: list[Place]) -> None:
        self._places = {place.name: place for place in compared}
        self._floats = Runner(exact.model, list(self._places))
        self._others = Runner(quantized.model, list(dict.fromkeys(place.quantized for place in compared)))
        self._forced = forced(exact.model, self._places)
        self._inherited = Runner(self._forced.model, list(self._forced.results.values()))

    def __call__(self, sample: Sample, index: int) -> Iterator[tuple[str, Array, Array, Array]]:
        """Each place's name with its float values, those of quantized inputs, and the quantized ones."""
        others = dict(self._others(sample, index))
        read = {name: others[place.quantized] for name, place in self._places.items()}
        feeds = {name: read[name] if name in read else sample[name] for name in self._forced.fed}
        inherited = dict(self._inherited(feeds, index))
        for name, values in self._floats(sample, index):
            result = self._forced.results.get(name)
            yield name, values, inherited[result] if result is not None else values, read[name]


def _shown(place: Place, exact: Array, *others: Array) -> tuple[Array, ...]:
    """The values, all of them 0 where the float model's say nothing: -inf, and what masks hide from a Softmax."""
    hidden = ~np.isfinite(exact)
    if place.is_masked and exact.ndim:
        largest = exact.max(axis=-1, keepdims=True, initial=-np.inf)
        hidden |= (exact < largest + HIDDEN) | (largest < NO_ROW)
    return tuple(np.where(hidden, 0, values) for values in (exact, *others)) if hidden.any() else (exact, *others)


def _powers(left: Array, right: Array) -> Reals:
    """The sum of products per channel [channels] of [before, channels, after]."""
    return np.asarray(np.einsum("ijk,ijk->j", left, right, dtype=np.float64))


class _Sums:
    """The powers of a tensor's values and errors by channel, summed over the samples."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.signal: Any = 0.0
        self.error: Any = 0.0
        self.own = self.dot = self.other = self.inherited = self.introduced = 0.0
        self.saturated = self.count = 0
        self.low, self.high = math.inf, -math.inf

    def add(self, exact: Array, inherited: Array, quantized: Array) -> None:
        x, y, z = (self._by_channel(values) for values in _shown(self.place, exact, quantized, inherited))
        self.signal = self.signal + _powers(x, x)
        self.error = self.error + _powers(x - y, x - y)
        self.inherited += float(_powers(x - z, x - z).sum())
        self.introduced += float(_powers(y - z, y - z).sum())
        self.dot += float(_powers(x, y).sum())
        self.other += float(_powers(y, y).sum())
        self.count += x.size
        if x.size:
            self.low, self.high = min(self.low, float(x.min())), max(self.high, float(x.max()))
        if self.place.params is not None:
            self._add_own(x.reshape(-1), self.place.params)

    def _add_own(self, exact: Array, params: QuantParams) -> None:
        for start in range(0, exact.size, _CHUNK):
            piece = exact[start : start + _CHUNK]
            errors = np.abs(piece - numerics.dequantize(numerics.quantize(piece, params), params))
            self.own += float(np.vdot(errors, errors))
            self.saturated += int(np.count_nonzero(errors > params.scale[0]))

    def _by_channel(self, values: Array) -> Array:
        """The values as [before, channels, after]."""
        axis, shape = self.place.axis, values.shape
        channels = shape[axis] if shape else 1
        return values.reshape(math.prod(shape[:axis]), channels, math.prod(shape[axis + 1 :]))

    def measure(self) -> TensorMeasure:
        place, signal, error = self.place, self.signal, self.error
        total = float(signal.sum())
        norm = math.sqrt(total * self.other)
        worst, worst_sqnr = _worst(signal, error)
        return TensorMeasure(
            tensor=place.name,
            op_type=place.op_type,
            sqnr=_decibels(total, float(error.sum())),
            introduced=_decibels(total, self.introduced),
            inherited=_decibels(total, self.inherited),
            own=_decibels(total, self.own) if place.params is not None else None,
            cosine=self.dot / norm if norm else float(total == self.other),
            saturated=self.saturated / max(self.count, 1) if place.params is not None else None,
            axis=place.axis,
            worst_channel=worst,
            worst_channel_sqnr=worst_sqnr,
            low=self.low,
            high=self.high,
            reach=reach_of(place.params) if place.params is not None else None,
            types=place.types,
            inputs=place.inputs,
            is_output=place.is_output,
        )


def reach_of(params: QuantParams) -> tuple[float, float]:
    """The least and the greatest value of an encoding of one scale."""
    ends = np.array([params.dtype.low, params.dtype.high], params.dtype.numpy)
    low, high = numerics.dequantize(ends, params)
    return float(low), float(high)


def _decibels(signal: float, error: float) -> float | None:
    """10 log10(signal / error), None without error; a signal of zeros counts as the smallest one.

    An error that is infinite or no number counts as the largest one.
    """
    if error == 0:
        return None
    worst = error if math.isfinite(error) else 1e300
    return 10 * math.log10(max(signal, 1e-300)) - 10 * math.log10(worst)


def _worst(signal: Reals, error: Reals) -> tuple[int | None, float | None]:
    """The channel of least SQNR, None where no channel has an error."""
    ratios: Mapping[int, float | None] = {i: _decibels(float(s), float(error[i])) for i, s in enumerate(signal)}
    known = {channel: ratio for channel, ratio in ratios.items() if ratio is not None}
    channel = min(known, key=known.__getitem__, default=None)
    return (channel, known[channel]) if channel is not None else (None, None)
