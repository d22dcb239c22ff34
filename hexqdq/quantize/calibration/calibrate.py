"""Runs the float model over the calibration samples, one at a time, and observes its tensors."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from hexqdq.errors import CalibrationError
from hexqdq.quantize.calibration.ranges import Ranges
from hexqdq.quantize.observers import METHODS
from hexqdq.quantize.observers.base import WIDE_LEVELS, Knobs, Observer

Array = NDArray[Any]
Sample = Mapping[str, Array]
Progress = Callable[[int, int | None], None]
"""Called with the samples done and, where known, their number."""

_IN_MEMORY_BYTES = 1 << 30


def calibrate(
    model: ir.Model,
    names: Sequence[str],
    samples: Iterable[Sample],
    method: str,
    progress: Progress | None = None,
    knobs: Knobs = Knobs(),  # noqa: B008 - frozen
) -> Ranges:
    """The ranges of each named float value over the samples.

    Memory holds the activations of one sample. Raises CalibrationError where there is no sample,
    one does not fit the model's inputs, or a value is NaN or infinite.
    """
    observers: dict[str, Observer] = {name: METHODS[method](knobs) for name in names}
    run = Runner(model, names)
    for index, sample in enumerate(counted(samples, progress)):
        for name, values in run(sample, index):
            _require_finite(name, values, index)
            observers[name].update(values)
        del sample
    return _ranges(observers)


def counted(samples: Iterable[Sample], progress: Progress | None) -> Iterator[Sample]:
    """The samples, each told of once it was used; raises CalibrationError where there is none."""
    total = len(samples) if isinstance(samples, Sized) else None
    count = 0
    for sample in samples:
        yield sample
        del sample
        count += 1
        if progress is not None:
            progress(count, total)
    if progress is not None and total is None:
        progress(count, count)
    if not count:
        raise CalibrationError("calibration", "there are no samples", "give at least one; 50 to 200 are usual")


def _ranges(observers: Mapping[str, Observer]) -> Ranges:
    narrow, wide = {}, {}
    for name, observer in observers.items():
        try:
            narrow[name], wide[name] = observer.range(), observer.range(WIDE_LEVELS)
        except CalibrationError as error:
            raise CalibrationError(f"tensor {name!r}", error.problem, error.hint) from error
    return Ranges(narrow, wide)


def _require_finite(name: str, values: Array, index: int) -> None:
    if values.size and not (np.isfinite(values.min()) and np.isfinite(values.max())):
        kind = "NaN" if np.isnan(values).any() else "infinity"
        raise CalibrationError(
            f"tensor {name!r}", f"holds {kind} in calibration sample {index}", "remove the sample or mend the model"
        )


class Runner:
    """The float model with the observed values as outputs."""

    def __init__(self, model: ir.Model, names: Sequence[str]) -> None:
        self._inputs = {str(value.name): value for value in model.graph.inputs}
        self._fed = [name for name in names if name in self._inputs]
        self._fetched = [name for name in names if name not in self._inputs]
        self._session = _session(model, self._fetched)

    def __call__(self, sample: Sample, index: int) -> Iterable[tuple[str, Array]]:
        feeds = {name: self._feed(sample, name, index) for name in self._inputs}
        for name in sample:
            if name not in self._inputs:
                known = ", ".join(self._inputs)
                found = f"has {name!r}, which is no input; expected {known}"
                raise CalibrationError(f"calibration sample {index}", found, "name the arrays after the inputs")
        yield from ((name, feeds[name]) for name in self._fed)
        if self._fetched:
            yield from zip(self._fetched, self._session.run(self._fetched, feeds), strict=True)

    def _feed(self, sample: Sample, name: str, index: int) -> Array:
        value = self._inputs[name]
        assert value.shape is not None and value.dtype is not None
        if name not in sample:
            lacking = f"lacks input {name!r}"
            raise CalibrationError(f"calibration sample {index}", lacking, "give every input in each sample")
        array = np.asarray(sample[name])
        shape, dtype = value.shape.numpy(), value.dtype.numpy()
        if array.shape != shape or array.dtype != dtype:
            raise CalibrationError(
                f"calibration sample {index}",
                f"has {array.dtype} {array.shape} for input {name!r}; expected {dtype} {shape}",
                "store one sample a file, preprocessed as the model expects",
            )
        return array


def _session(model: ir.Model, names: Sequence[str]) -> Any:
    """An onnxruntime session of the model with ``names`` among its outputs."""
    import onnxruntime

    watched = model.clone()
    listed = {value.name for value in watched.graph.outputs}
    values = {v.name: v for node in watched.graph for v in node.outputs}
    watched.graph.outputs.extend(values[name] for name in names if name not in listed)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    providers = ["CPUExecutionProvider"]
    size = sum(v.const_value.nbytes for v in watched.graph.initializers.values() if v.const_value is not None)
    if size <= _IN_MEMORY_BYTES:
        return onnxruntime.InferenceSession(ir.to_proto(watched).SerializeToString(), options, providers=providers)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        ir.save(watched, path, external_data="model.data")
        return onnxruntime.InferenceSession(str(path), options, providers=providers)
