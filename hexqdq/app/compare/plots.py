"""Plots of a comparison as SVG text: the error along the graph, and histograms."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from hexqdq.quantize.compare.histograms import Histogram
from hexqdq.quantize.compare.measure import TensorMeasure

TOTAL, HERE, INHERITED, BAD, QUIET = "#1f4e79", "#d9822b", "#8fb3d1", "#c0392b", "#6b7280"
HIGHEST = 80.0
"""What lies above it, or has no error, is drawn there."""
NAMED = 4
NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))


def error_along_graph(measures: Sequence[TensorMeasure], worst: Sequence[TensorMeasure], good: float) -> str:
    """SQNR by tensor in the order of computation: whole, inherited and introduced; the saturated share below.

    The first of ``worst`` are named.
    """
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[4, 1])
    places = np.arange(len(measures))
    whole = _levels([entry.sqnr for entry in measures])
    upper.plot(places, _levels([entry.inherited for entry in measures]), color=INHERITED, lw=1, label="inherited")
    here = _levels([entry.introduced for entry in measures])
    upper.plot(places, here, ".", color=HERE, ms=4, label="introduced here")
    upper.plot(places, whole, color=TOTAL, lw=1.6, label="whole error")
    bad = whole < good
    upper.plot(places[bad], whole[bad], "o", color=BAD, ms=4, label=f"below {good:g} dB")
    upper.axhline(good, color=BAD, lw=0.8, ls="--")
    _name_worst(upper, measures, worst, good)
    upper.set_ylabel("SQNR, dB")
    upper.set_ylim(min(0.0, float(whole.min(initial=0)) - 3), HIGHEST + 3)
    figure.legend(loc="outside upper right", ncols=4, frameon=False)
    lower.bar(places, [100 * (entry.saturated or 0) for entry in measures], color=HERE, width=0.9)
    lower.set_ylabel("saturated, %")
    lower.set_xlabel("tensors in the order of computation")
    lower.xaxis.set_major_locator(MaxNLocator(integer=True))
    return _svg(figure, "along")


def histogram(found: Histogram, entry: TensorMeasure) -> str:
    """Float and quantized counts over the values, the encoding's range drawn."""
    figure = Figure(figsize=(5.6, 2.3), layout="constrained")
    axes = figure.subplots()
    axes.stairs(found.exact, found.edges, fill=True, color=INHERITED, label="float")
    axes.stairs(found.quantized, found.edges, color=TOTAL, lw=1.2, label="quantized")
    if entry.reach is not None:
        for end, label in zip(entry.reach, ("range", None), strict=True):
            axes.axvline(end, color=BAD, lw=1.2, ls="--", label=label)
    axes.set_yscale("symlog", linthresh=1)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("values")
    figure.legend(loc="outside right upper", frameon=False, fontsize="small")
    return _svg(figure, found.tensor)


def _levels(decibels: Sequence[float | None]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([HIGHEST if level is None else min(level, HIGHEST) for level in decibels], np.float64)


def _name_worst(axes: Any, measures: Sequence[TensorMeasure], worst: Sequence[TensorMeasure], good: float) -> None:
    """Names tensors above the curves, one line each."""
    for row, entry in enumerate(worst[:NAMED]):
        index = measures.index(entry)
        (height,) = _levels([entry.sqnr])
        axes.annotate(
            _shortened(entry.tensor),
            (index, height),
            xytext=(index, HIGHEST - 3 - 7 * row),
            ha="left" if index < len(measures) / 2 else "right",
            fontsize="small",
            color=BAD if height < good else QUIET,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
            arrowprops={"arrowstyle": "-", "color": QUIET, "lw": 0.6},
        )


def _shortened(name: str, most: int = 42) -> str:
    return name if len(name) <= most else f"…{name[1 - most :]}"


def _svg(figure: Figure, salt: str) -> str:
    """The figure as an SVG element, the same for equal figures; ``salt`` keeps the ids of several apart."""
    style: Any = {"svg.fonttype": "none", "svg.hashsalt": salt, "font.family": "sans-serif", "font.size": 9}
    with rc_context(style):
        for axes in figure.axes:
            axes.spines[["top", "right"]].set_visible(False)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata=NO_METADATA, transparent=True)
    found = text.getvalue()
    return found[found.index("<svg") :]
