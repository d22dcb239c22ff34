"""Layouts: which orders of dimensions each ONNX value exists in, so that transposes are written only where needed."""

from __future__ import annotations

from collections.abc import Sequence

from hexqdq.compile.tosa import instructions
from hexqdq.compile.tosa.builder import Builder, Value

Order = tuple[int, ...]
"""Dimension i of the SSA value is dimension ``order[i]`` of the ONNX value."""


def logical(rank: int) -> Order:
    """ONNX's own order."""
    return tuple(range(rank))


def channels_last(rank: int) -> Order:
    """NCHW to NHWC: batch, then the spatial dimensions, then channels."""
    return (0, *range(2, rank), 1)


def permuted(shape: Sequence[int], order: Order) -> tuple[int, ...]:
    """The shape of a value in ``order``."""
    return tuple(shape[index] for index in order)


class Layouts:
    """The SSA forms of every ONNX value by order; ``get`` writes a missing one once."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._forms: dict[str, dict[Order, Value]] = {}

    def set(self, name: str, order: Order, value: Value) -> None:
        """Record a form of the value ``name``."""
        self._forms.setdefault(name, {})[order] = value

    def orders(self, name: str) -> tuple[Order, ...]:
        """The orders in which the value exists, first made first."""
        return tuple(self._forms[name])

    def get(self, name: str, order: Order) -> Value:
        """The value in ``order``, from a form that only differs in axes of one element where there is one."""
        forms = self._forms[name]
        if order not in forms:
            nearest = (item for item in forms.items() if _is_free(*item, order))
            source_order, source = next(nearest, next(iter(forms.items())))
            forms[order] = instructions.reorder(self._builder, source, [source_order.index(index) for index in order])
        return forms[order]

    def common(self, names: Sequence[str]) -> Order:
        """An order that the most of the values of one rank have without a transpose, ONNX's own among equals last."""
        orders = dict.fromkeys(order for name in names for order in self._forms[name])
        rank = len(next(iter(orders)))
        if rank > 2:
            orders.setdefault(channels_last(rank))

        def free(order: Order) -> int:
            return sum(any(_is_free(*item, order) for item in self._forms[name].items()) for name in names)

        return max(orders, key=lambda order: (free(order), order != logical(len(order))))

    def alias(self, name: str, source: str, perm: Sequence[int]) -> None:
        """Make ``name`` the ONNX Transpose of ``source`` by ``perm`` without writing anything."""
        for order, value in self._forms[source].items():
            self.set(name, tuple(list(perm).index(index) for index in order), value)


def _is_free(source_order: Order, source: Value, order: Order) -> bool:
    """Whether a form lies in memory as the value in ``order`` would: axes of one element may stand anywhere."""
    long = [axis for axis, size in zip(source_order, source.shape, strict=True) if size != 1]
    return long == [axis for axis in order if axis in long]
