"""Runs the float model over the calibration samples and observes its tensors."""

from __future__ import annotations

import math
import queue
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from itertools import chain
from typing import Any, Protocol, TypeVar

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from hexqdq.errors import CalibrationError
from hexqdq.quantize.calibration.parallel import in_order, threads_for
from hexqdq.quantize.calibration.ranges import Ranges
from hexqdq.quantize.calibration.session import WatchedSession
from hexqdq.quantize.observers import METHODS
from hexqdq.quantize.observers.base import WIDE_LEVELS, Knobs, Observer, Range

Array = NDArray[Any]
Sample = Mapping[str, Array]
Progress = Callable[[int, int | None], None]
"""Called with the samples done and, where known, their number."""
Results = Iterable[tuple[str, Array]]
"""The watched values of one sample, by name."""
Result = TypeVar("Result")

_SAME_VALUES = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "DepthToSpace", "SpaceToDepth", "Identity")
"""Ops whose output has the values of its input in another order."""


class Watch(Protocol):
    """Sees more of the calibrated model's runs: small values that nodes added to it compute."""

    @property
    def model(self) -> ir.Model:
        """The calibrated model with those nodes."""

    @property
    def names(self) -> Collection[str]:
        """The values to see."""

    def add(self, values: Mapping[str, Array]) -> None:
        """Takes the values of one sample."""


def calibrate(
    model: ir.Model,
    names: Sequence[str],
    samples: Iterable[Sample],
    method: str,
    progress: Progress | None = None,
    knobs: Knobs = Knobs(),  # noqa: B008 - frozen
    masks: Collection[str] = (),
    watch: Watch | None = None,
) -> Ranges:
    """The ranges of each named float value over the samples; [0, 0] for one that has no elements.

    ``watch`` sees the same runs. Samples run in parallel where memory permits; neither that nor their
    order changes a bit. Raises CalibrationError where there is no sample, one does not fit the model's
    inputs, or a value is NaN or infinite; -inf in ``masks`` does not count.
    """
    values = _values(model.graph)
    watched = {name: _first_of_same_values(values[name]) for name in names}
    observed = tuple(dict.fromkeys(watched.values()))
    run = Runner(model if watch is None else watch.model, (*observed, *(watch.names if watch else ())))
    pool = _Pool(observed, method, knobs, masks)
    for others in run.each(samples, pool.observing, progress):
        if watch is not None:
            watch.add(others)
    narrow, wide = pool.ranges(run.empty)
    return Ranges({name: narrow[watched[name]] for name in names}, {name: wide[watched[name]] for name in names})


def _first_of_same_values(value: ir.Value) -> str:
    """The name of the value that this one is in another order, itself where it is none."""
    node = value.producer()
    while node is not None and node.op_type in _SAME_VALUES and node.domain == "":
        source = node.inputs[0]
        if source is None or source.is_initializer():
            break
        value, node = source, source.producer()
    return str(value.name)


class _Pool:
    """Sets of observers, one per sample that is worked on: a set is used by one thread at a time."""

    def __init__(self, names: Sequence[str], method: str, knobs: Knobs, masks: Collection[str]) -> None:
        self._names, self._method, self._knobs, self._masks = names, METHODS[method], knobs, masks
        self._free: queue.SimpleQueue[dict[str, Observer]] = queue.SimpleQueue()

    def observing(self, index: int, results: Results) -> dict[str, Array]:
        """Observes the results of its names; the other ones."""
        try:
            observers = self._free.get_nowait()
        except queue.Empty:
            observers = {name: self._method(self._knobs) for name in self._names}
        others = {}
        for name, found in results:
            if name not in observers:
                others[name] = found.copy()  # results live as long as this call
                continue
            values = found[found > -np.inf] if name in self._masks else found
            if values.size:
                observers[name].update(values, _finite_bounds(name, values, index))
        self._free.put(observers)
        return others

    def ranges(self, empty: Collection[str]) -> tuple[dict[str, Range], dict[str, Range]]:
        observers = self._free.get()
        while not self._free.empty():
            for name, other in self._free.get().items():
                observers[name].merge(other)
        narrow: dict[str, Range] = {}
        wide: dict[str, Range] = {}
        for name, observer in observers.items():
            nothing = name in empty
            narrow[name] = (0.0, 0.0) if nothing else observer.range()
            wide[name] = (0.0, 0.0) if nothing else observer.range(WIDE_LEVELS)
        return narrow, wide


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


def _finite_bounds(name: str, values: Array, index: int) -> Range:
    low, high = float(values.min()), float(values.max())
    if not (math.isfinite(low) and math.isfinite(high)):
        kind = "NaN" if np.isnan(values).any() else "infinity"
        raise CalibrationError(
            f"tensor {name!r}", f"holds {kind} in calibration sample {index}", "remove the sample or mend the model"
        )
    return low, high


class Runner:
    """The float model with the observed values as outputs."""

    def __init__(self, model: ir.Model, names: Sequence[str]) -> None:
        self._inputs = {str(value.name): value for value in model.graph.inputs}
        values = _values(model.graph)
        self._bytes = 4 * sum(_size(values[name]) for name in names)
        self.empty = frozenset(name for name in names if not _size(values[name]))
        self._fed = [name for name in names if name in self._inputs]
        self._fetched = [name for name in names if name not in self._inputs]
        self._session = WatchedSession(model, self._fetched) if self._fetched else None
        self._made = [values[name] for name in self._fetched]
        self._free: queue.SimpleQueue[list[Array]] = queue.SimpleQueue()

    def each(
        self, samples: Iterable[Sample], use: Callable[[int, Results], Result], progress: Progress | None = None
    ) -> Iterator[Result]:
        """``use(index, results)`` of each sample, in their order; memory holds the samples that run at once.

        The results are overwritten by a later sample: ``use`` keeps none of them.
        """

        def work(index: int, sample: Sample) -> Result:
            feeds = self._feeds(sample, index)
            try:
                buffers = self._free.get_nowait()
            except queue.Empty:
                buffers = [_buffer(value) for value in self._made]
            if self._session is not None:
                self._session.run_into(feeds, buffers)
            fed = ((name, feeds[name]) for name in self._fed)
            result = use(index, chain(fed, zip(self._fetched, buffers, strict=True)))
            self._free.put(buffers)
            return result

        return in_order(work, counted(samples, progress), threads_for(self._bytes))

    def __call__(self, sample: Sample, index: int) -> Results:
        feeds = self._feeds(sample, index)
        yield from ((name, feeds[name]) for name in self._fed)
        if self._session is not None:
            yield from zip(self._fetched, self._session.run(feeds), strict=True)

    def _feeds(self, sample: Sample, index: int) -> dict[str, Array]:
        feeds = {name: self._feed(sample, name, index) for name in self._inputs}
        for name in sample:
            if name not in self._inputs:
                known = ", ".join(self._inputs)
                found = f"has {name!r}, which is no input; expected {known}"
                raise CalibrationError(f"calibration sample {index}", found, "name the arrays after the inputs")
        return feeds

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


def _values(graph: ir.Graph) -> dict[str, ir.Value]:
    made = (value for node in graph for value in node.outputs)
    return {str(value.name): value for value in (*graph.inputs, *made)}


def _size(value: ir.Value) -> int:
    assert value.shape is not None
    return math.prod(value.shape.numpy())


def _buffer(value: ir.Value) -> Array:
    assert value.shape is not None and value.dtype is not None
    return np.empty(value.shape.numpy(), value.dtype.numpy())
