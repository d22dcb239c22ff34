"""Compares a float model with its quantized form, tensor by tensor."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from hexqdq import numerics
from hexqdq.errors import ModelError
from hexqdq.import_.product import ImportedModel
from hexqdq.qtypes import QType, QuantParams
from hexqdq.quantize.calibration.calibrate import Progress, Runner, Sample, counted
from hexqdq.quantize.planning.graph import constant, is_float

Array = NDArray[Any]
Reals = NDArray[np.float64]

_CHUNK = 1 << 15


@dataclass(frozen=True)
class TensorMeasure:
    """How far a tensor of the quantized model is from the float model's, over all samples.

    ``sqnr`` is the power of the float values over that of the error, in dB, None where they are equal;
    ``own`` that of the tensor's encoding alone, on the float model's values. ``saturated`` is the share
    of float values that the encoding cannot reach; both are None where the tensor has none.
    ``worst_channel`` is the channel of least SQNR, counted along ``axis``.
    """

    tensor: str
    op_type: str
    sqnr: float | None
    own: float | None
    cosine: float
    saturated: float | None
    axis: int
    worst_channel: int | None
    worst_channel_sqnr: float | None
    low: float
    high: float


@dataclass(frozen=True)
class _Place:
    """A value of the float model, what reads like it in the quantized one, and its encoding there."""

    name: str
    op_type: str
    axis: int
    quantized: str
    params: QuantParams | None


def measure(
    exact: ImportedModel, quantized: ImportedModel, samples: Iterable[Sample], progress: Progress | None = None
) -> tuple[TensorMeasure, ...]:
    """One measure per tensor that both models have, in the order of computation.

    Streams: memory holds the activations of one sample. Raises ModelError where they have none in
    common, and CalibrationError where a sample does not fit.
    """
    places = _places(exact, quantized)
    floats = Runner(exact.model, [place.name for place in places])
    others = Runner(quantized.model, list(dict.fromkeys(place.quantized for place in places)))
    sums = {place.name: _Sums(place) for place in places}
    for index, sample in enumerate(counted(samples, progress)):
        found = dict(others(sample, index))
        for name, values in floats(sample, index):
            sums[name].add(values, found[sums[name].place.quantized])
    return tuple(entry.measure() for entry in sums.values())


def _places(exact: ImportedModel, quantized: ImportedModel) -> list[_Place]:
    values = {str(value.name): value for value in _values(quantized.model.graph)}
    places = []
    for value in _values(exact.model.graph):
        twin = values.get(str(value.name))
        if twin is None or not is_float(value) or not is_float(twin):
            continue
        read, params = _encoded(twin)
        shape, producer = value.shape, value.producer()
        assert shape is not None
        if shape != read.shape:
            raise ModelError(quantized.source, f"computes {value.name!r} as {read.shape}; expected {shape}")
        axis = 1 if len(shape) > 3 else max(len(shape) - 1, 0)
        op_type = producer.op_type if producer is not None else "input"
        places.append(_Place(str(value.name), op_type, axis, str(read.name), params))
    if not any(place.params for place in places):
        hint = "compare a float model with the QDQ model that was made from it"
        raise ModelError(quantized.source, f"has no quantized tensor in common with {exact.source}", hint)
    return places


def _values(graph: ir.Graph) -> Iterator[ir.Value]:
    yield from graph.inputs
    for node in graph:
        yield from node.outputs


def _encoded(value: ir.Value) -> tuple[ir.Value, QuantParams | None]:
    """What follows a value's Q and DQ, with their parameters; the value itself where it has none.

    A graph output is what its DQ gives.
    """
    producer = value.producer()
    if producer is not None and producer.op_type == "DequantizeLinear":
        return value, _params(producer)
    for use in value.uses():
        if use.node.op_type == "QuantizeLinear" and use.idx == 0:
            for following in use.node.outputs[0].uses():
                if following.node.op_type == "DequantizeLinear":
                    return following.node.outputs[0], _params(following.node)
    return value, None


def _params(node: ir.Node) -> QuantParams | None:
    """The parameters of a DQ of one scale."""
    scale = constant(node.inputs[1])
    zero_point = constant(node.inputs[2]) if len(node.inputs) > 2 else np.zeros(1, np.uint8)
    if scale is None or zero_point is None or scale.size != 1:
        return None
    return QuantParams.per_tensor(QType.from_numpy(zero_point.dtype), float(scale.item()), int(zero_point.item()))


def _powers(left: Array, right: Array) -> Reals:
    """The sum of products per channel [channels] of [before, channels, after]."""
    return np.asarray(np.einsum("ijk,ijk->j", left, right, dtype=np.float64))


class _Sums:
    """The powers of a tensor's values and errors by channel, summed over the samples."""

    def __init__(self, place: _Place) -> None:
        self.place = place
        self.signal: Any = 0.0
        self.error: Any = 0.0
        self.own = self.dot = self.other = 0.0
        self.saturated = self.count = 0
        self.low, self.high = math.inf, -math.inf

    def add(self, exact: Array, quantized: Array) -> None:
        x, y = self._by_channel(exact), self._by_channel(quantized)
        self.signal = self.signal + _powers(x, x)
        self.error = self.error + _powers(x - y, x - y)
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
        encoded = place.params is not None
        norm = math.sqrt(total * self.other)
        worst, worst_sqnr = _worst(signal, error)
        return TensorMeasure(
            tensor=place.name,
            op_type=place.op_type,
            sqnr=_decibels(total, float(error.sum())),
            own=_decibels(total, self.own) if encoded else None,
            cosine=self.dot / norm if norm else float(total == self.other),
            saturated=self.saturated / max(self.count, 1) if encoded else None,
            axis=place.axis,
            worst_channel=worst,
            worst_channel_sqnr=worst_sqnr,
            low=self.low,
            high=self.high,
        )


def _decibels(signal: float, error: float) -> float | None:
    """10 log10(signal / error), None without error; a signal of zeros counts as the smallest one."""
    return 10 * math.log10(max(signal, 1e-300) / error) if error > 0 else None


def _worst(signal: Reals, error: Reals) -> tuple[int | None, float | None]:
    """The channel of least SQNR, None where no channel has an error."""
    ratios: Mapping[int, float | None] = {i: _decibels(float(s), float(error[i])) for i, s in enumerate(signal)}
    known = {channel: ratio for channel, ratio in ratios.items() if ratio is not None}
    channel = min(known, key=known.__getitem__, default=None)
    return (channel, known[channel]) if channel is not None else (None, None)
