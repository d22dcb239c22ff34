"""A contraction as rows of weights times vectors of inputs.

In a group g, output channel c at one position is ``sum over k of rows[g, c, k] * vectors[g, position, k]``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from hexqdq.qtypes import QuantParams
from hexqdq.quantize.planning.graph import constant, input_at

Array = NDArray[Any]


@dataclass(frozen=True)
class Window:
    """Where a convolution reads: ``kernel``, ``strides``, ``dilations``, and ``pads`` (begin, end) per dimension.

    ``stuffing`` zeros are put between inputs first; a transposed convolution is a convolution of that.
    """

    groups: int
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    stuffing: tuple[int, ...]

    def vectors(self, data: Array, count: int, chooser: np.random.Generator) -> Array:
        """At most ``count`` positions of ``data`` [batch, channels, ...] as [groups, positions, k]."""
        padded = np.pad(self._stuffed(data), ((0, 0), (0, 0), *self.pads))
        reach = tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True))
        dimensions = len(reach)
        space: Any = tuple(range(2, 2 + dimensions))
        seen = np.lib.stride_tricks.sliding_window_view(padded, reach, space)
        every = (slice(None), slice(None), *_every(self.strides), *_every(self.dilations))
        seen = np.moveaxis(seen[every], 1, 1 + dimensions)
        grid = seen.shape[: 1 + dimensions]
        taken = seen[np.unravel_index(chosen(math.prod(grid), count, chooser), grid)]
        return np.moveaxis(taken.reshape(len(taken), self.groups, -1), 0, 1)

    def _stuffed(self, data: Array) -> Array:
        if not any(self.stuffing):
            return data
        steps = [zeros + 1 for zeros in self.stuffing]
        sizes = [(size - 1) * step + 1 for size, step in zip(data.shape[2:], steps, strict=True)]
        made = np.zeros((*data.shape[:2], *sizes), data.dtype)
        places = (slice(None), slice(None), *_every(steps))
        made[places] = data
        return made


Seen = tuple[str, QuantParams, Window | None]


def _every(steps: Iterable[int]) -> list[slice]:
    return [slice(None, None, step) for step in steps]


def chosen(total: int, count: int, chooser: np.random.Generator) -> Array:
    """At most ``count`` of ``total`` places, in order."""
    if total <= count:
        return np.arange(total)
    return np.sort(chooser.choice(total, count, replace=False, shuffle=False))


@dataclass(frozen=True)
class Layer:
    """A contraction whose weights are constant; it reads ``value`` with ``params``.

    ``window`` is None for matrix products; ``transposed`` says that weights lie as [k, channels].
    """

    node: str
    value: str
    params: QuantParams
    window: Window | None
    transposed: bool

    @property
    def seen(self) -> Seen:
        """What the vectors depend on, the same for layers that see the same."""
        return self.value, self.params, self.window

    def vectors(self, data: Array, count: int, chooser: np.random.Generator) -> Array:
        """At most ``count`` positions of the input as [groups, positions, k]."""
        if self.window is not None:
            return self.window.vectors(data, count, chooser)
        flat = data.reshape(-1, data.shape[-1])
        return flat[chosen(len(flat), count, chooser)][None]

    def rows(self, weights: Array) -> Array:
        """Weights as [groups, channels of a group, k]."""
        if self.window is None:
            return (weights.T if self.transposed else weights)[None]
        if not self.transposed:
            return weights.reshape(self.window.groups, weights.shape[0] // self.window.groups, -1)
        grouped = weights.reshape(self.window.groups, -1, *weights.shape[1:])
        turned = np.flip(np.swapaxes(grouped, 1, 2), tuple(range(3, grouped.ndim)))
        return turned.reshape(*turned.shape[:2], -1)

    def weights(self, rows: Array, shape: Sequence[int]) -> Array:
        """The weights of ``shape`` whose rows these are."""
        if self.window is None:
            return np.ascontiguousarray(rows[0].T if self.transposed else rows[0])
        if not self.transposed:
            return rows.reshape(shape)
        groups = self.window.groups
        turned = rows.reshape(groups, shape[1], shape[0] // groups, *shape[2:])
        return np.swapaxes(np.flip(turned, tuple(range(3, turned.ndim))), 1, 2).reshape(shape)


def layer_of(node: ir.Node, params: QuantParams) -> Layer | None:
    """A node with constant weights that reads its data with ``params``; None where its weights are no rows."""
    weights, data = constant(input_at(node, 1)), input_at(node, 0)
    assert weights is not None and data is not None
    name, value = str(node.name), str(data.name)
    if node.op_type in ("Conv", "ConvTranspose"):
        return Layer(name, value, params, _window(node, weights.shape), node.op_type == "ConvTranspose")
    if node.op_type == "Gemm" and not _flag(node, "transA"):
        return Layer(name, value, params, None, not _flag(node, "transB"))
    if node.op_type == "MatMul" and weights.ndim == 2:
        return Layer(name, value, params, None, True)
    return None


def _flag(node: ir.Node, name: str) -> bool:
    return name in node.attributes and node.attributes[name].as_int() != 0


def _window(node: ir.Node, shape: Sequence[int]) -> Window:
    kernel = tuple(int(size) for size in shape[2:])
    ones = (1,) * len(kernel)
    strides, dilations = _integers(node, "strides", ones), _integers(node, "dilations", ones)
    flat = _integers(node, "pads", (0,) * 2 * len(kernel))
    pads = tuple(zip(flat[: len(kernel)], flat[len(kernel) :], strict=True))
    groups = node.attributes["group"].as_int() if "group" in node.attributes else 1
    if node.op_type == "Conv":
        return Window(groups, kernel, strides, dilations, pads, (0,) * len(kernel))
    reach = [(k - 1) * d for k, d in zip(kernel, dilations, strict=True)]
    kept = tuple((max(r - low, 0), max(r - high, 0)) for r, (low, high) in zip(reach, pads, strict=True))
    return Window(groups, kernel, ones, dilations, kept, tuple(step - 1 for step in strides))


def _integers(node: ir.Node, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(node.attributes[name].as_ints()) if name in node.attributes else default
