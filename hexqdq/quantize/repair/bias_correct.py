"""Bias correction: takes the mean error of quantized weights and inputs out of every contraction.

    b'[c] = b[c] + E[(W * x)[c]] - E[(W_q * x_q)[c]]

where W * x is the contraction of the float model's own input x, W_q and x_q are what quantization
makes of both, c is the output channel and E the mean over the calibration samples and all positions
(Nagel, van Baalen, Blankevoort, Welling 2019, "Data-Free Quantization Through Weight Equalization and
Bias Correction", section 4.2, with the means measured as in its appendix D; Finkelstein, Almog, Grobman
2019, "Fighting Quantization Bias With Bias"). Every contraction is corrected on float inputs, all in one
pass: correcting them together on the quantized model's inputs would count each shift again at every
contraction after it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from hexqdq.qtypes import QuantParams
from hexqdq.quantize.calibration.calibrate import Progress, Results, Runner, Sample
from hexqdq.quantize.draft import Draft
from hexqdq.quantize.planning.graph import constant, input_at
from hexqdq.quantize.planning.plan import plan
from hexqdq.quantize.planning.select import select
from hexqdq.quantize.writing.contractions import bias_place, has_constant_weights, quantize_contraction
from hexqdq.quantize.writing.insert import QdqWriter, Reader

Array = NDArray[Any]
Means = NDArray[np.float64]


@dataclass(frozen=True)
class Pair:
    """A contraction's float output, that of its quantized twin, and the axis of their channels."""

    node: str
    exact: str
    quantized: str
    axis: int


def bias_correct(draft: Draft, samples: Iterable[Sample], progress: Progress | None = None) -> Draft:
    """The draft with what to add to the bias of each contraction that has one [channels].

    Streams: memory holds the activations of the samples that run at once.
    """
    model, pairs = _with_twins(draft)
    axes = {name: pair.axis for pair in pairs for name in (pair.exact, pair.quantized)}
    if not pairs:
        return draft
    sums: dict[str, Any] = defaultdict(float)
    count = 0

    def means(index: int, results: Results) -> dict[str, Means]:
        return {name: _means(values, axes[name]) for name, values in results}

    for found_means in Runner(model, tuple(axes)).each(samples, means, progress):
        for name, mean in found_means.items():
            sums[name] = sums[name] + mean
        count += 1
    found = {pair.node: (sums[pair.exact] - sums[pair.quantized]) / count for pair in pairs}
    return replace(draft, corrections={**draft.corrections, **found})


def _means(values: Array, axis: int) -> Means:
    others = tuple(index for index in range(values.ndim) if index != axis)
    return np.asarray(values.mean(axis=others, dtype=np.float64))


def _with_twins(draft: Draft) -> tuple[ir.Model, list[Pair]]:
    """The float model, and beside each contraction with a bias one of quantized weights and input."""
    model = draft.imported.model.clone()
    selection = select(model.graph, draft.recipe)
    made = plan(selection)
    encodings = draft.encodings(made)
    writer = QdqWriter(model.graph)
    if not draft.is_narrow(made):
        writer.admit_all_types(model)
    pairs, readers = [], defaultdict[tuple[ir.Value, QuantParams], list[Reader]](list)
    for node in selection.ends:
        data = input_at(node, 0)
        if data is None or not has_constant_weights(node) or str(data.name) not in made.values:
            continue
        if constant(input_at(*bias_place(node, selection))) is None:
            continue
        read = encodings.read(node, data)
        weights = quantize_contraction(node, selection, draft, read.scale[0], read.dtype).weights
        twin = writer.twin(node)
        writer.constant(twin, 1, weights, str(twin.name))
        readers[data, read].append((twin, 0))
        pairs.append(Pair(str(node.name), _output(node), _output(twin), _channel_axis(node)))
    for (value, read), twins in readers.items():
        writer.pair(value, read, made.values[str(value.name)], twins)
    return model, pairs


def _output(node: ir.Node) -> str:
    return str(node.outputs[0].name)


def _channel_axis(node: ir.Node) -> int:
    shape = node.outputs[0].shape
    assert shape is not None
    return 1 if node.op_type in ("Conv", "ConvTranspose") else len(shape) - 1
