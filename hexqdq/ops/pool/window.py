"""Where the windows of a pool lie, and how much of the input each covers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq.ops.contraction import ACTIVATION_TYPES
from hexqdq.ops.spec import AttributeIn, Condition, DtypeIn, PerTensor, RankIn, SameDtype
from hexqdq.ops.unit import QuantUnit

Array = NDArray[Any]


@dataclass(frozen=True)
class Span:
    """Windows of ``kernel`` elements along one axis: ``outputs`` of them, ``stride`` apart, from ``-before`` on.

    ``after`` are the pads that the model gives at the end; with ceil_mode windows may reach further.
    """

    size: int
    kernel: int
    stride: int
    before: int
    after: int
    outputs: int

    @property
    def reach(self) -> int:
        """Elements from the input's end to the last window's; negative where windows end before it."""
        return (self.outputs - 1) * self.stride + self.kernel - self.before - self.size

    def counts(self, include_pads: bool) -> NDArray[np.int64]:
        """Elements of every window [outputs] inside the input, or inside the padded input."""
        starts = np.arange(self.outputs, dtype=np.int64) * self.stride - self.before
        low, high = (-self.before, self.size + self.after) if include_pads else (0, self.size)
        inside = np.minimum(starts + self.kernel, high) - np.maximum(starts, low)
        return np.asarray(np.maximum(inside, 0), np.int64)


def tuple_of(unit: QuantUnit, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
    """A tuple attribute of integers."""
    value = unit.attributes.get(name, default)
    assert isinstance(value, tuple)
    return tuple(int(item) for item in value)


def spans_of(unit: QuantUnit) -> tuple[Span, ...]:
    """The windows along every spatial axis."""
    sizes, outputs = unit.input(0).shape[2:], unit.output.shape[2:]
    rank = len(sizes)
    kernel = tuple_of(unit, "kernel_shape", sizes)
    strides = tuple_of(unit, "strides", (1,) * rank)
    pads = tuple_of(unit, "pads", (0,) * (2 * rank))
    numbers = zip(sizes, kernel, strides, pads[:rank], pads[rank:], outputs, strict=True)
    return tuple(Span(*item) for item in numbers)


def windows(values: Array, spans: tuple[Span, ...], fill: int) -> Array:
    """``values`` [n, c, spatial...] as windows [n, c, outputs..., kernel...], ``fill`` outside of the input."""
    pads = [(span.before, max(span.reach, 0)) for span in spans]
    padded: Array = np.pad(values, ((0, 0), (0, 0), *pads), constant_values=fill)
    axes = tuple(range(2, values.ndim))
    kernel = tuple(span.kernel for span in spans)
    view: Array = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=axes)  # type: ignore[call-overload]
    steps = tuple(slice(0, (span.outputs - 1) * span.stride + 1, span.stride) for span in spans)
    index = (slice(None), slice(None), *steps)
    return view[index]


def _beyond_input(unit: QuantUnit) -> str | None:
    empty = [axis for axis, span in enumerate(spans_of(unit)) if (span.counts(False) == 0).any()]
    return f"one outside of it along axis {empty[0] + 2}" if empty else None


def _dilated(unit: QuantUnit) -> str | None:
    dilations = tuple_of(unit, "dilations", ())
    return f"dilations {dilations}" if set(dilations) - {1} else None


LIMITS = (
    RankIn(0, (3, 4)),
    DtypeIn(0, ACTIVATION_TYPES),
    DtypeIn(-1, ACTIVATION_TYPES),
    SameDtype(),
    AttributeIn("auto_pad", ("NOTSET", "VALID")),
    Condition("a pool's dilations must be 1", _dilated),
    Condition("every window must reach into the input", _beyond_input),
)

SCALE_LIMITS = (PerTensor(0), PerTensor(-1))
