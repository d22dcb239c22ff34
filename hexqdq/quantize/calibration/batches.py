"""Batches of samples given to a model of a smaller batch: taken apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sized
from typing import Any

import onnx_ir as ir
from numpy.typing import NDArray

Sample = Mapping[str, NDArray[Any]]
Shapes = Mapping[str, tuple[int, ...]]


def of_model_batch(samples: Iterable[Sample], graph: ir.Graph) -> Iterable[Sample]:
    """The samples; those that hold several batches of the model along axis 0 of every input as their parts.

    What has a length keeps one, as if all were as the first.
    """
    shapes = {str(v.name): tuple(v.shape.numpy()) for v in graph.inputs if v.shape is not None}
    if isinstance(samples, Sized):
        first = next(iter(samples), None)
        parts = _parts(first, shapes)
        return samples if parts == 1 else _Apart(samples, shapes, parts * len(samples))
    return _taken_apart(samples, shapes)


class _Apart:
    """Samples of a length, to be iterated any number of times."""

    def __init__(self, samples: Iterable[Sample], shapes: Shapes, count: int) -> None:
        self._samples, self._shapes, self._count = samples, shapes, count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Sample]:
        return _taken_apart(self._samples, self._shapes)


def _parts(sample: Sample | None, shapes: Shapes) -> int:
    """How many of the model's batches a sample holds; 1 where it is none of several."""
    if sample is None or not shapes or sample.keys() != shapes.keys():
        return 1
    counts = set()
    for name, shape in shapes.items():
        given = getattr(sample[name], "shape", ())
        if not shape or not given or given[1:] != shape[1:] or not shape[0] or given[0] % shape[0]:
            return 1
        counts.add(given[0] // shape[0])
    return max(1, *counts) if len(counts) == 1 else 1


def _taken_apart(samples: Iterable[Sample], shapes: Shapes) -> Iterator[Sample]:
    for sample in samples:
        parts = _parts(sample, shapes)
        if parts == 1:
            yield sample
        for part in range(parts if parts > 1 else 0):
            yield {name: sample[name][part * shape[0] : (part + 1) * shape[0]] for name, shape in shapes.items()}
        del sample  # before the next one is drawn
