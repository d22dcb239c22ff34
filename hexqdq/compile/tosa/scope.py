"""Scope: what a lowering works with: the builder, the layouts of every value, and the common last step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from hexqdq.compile.tosa import instructions
from hexqdq.compile.tosa.builder import Builder, Value
from hexqdq.compile.tosa.layouts import Layouts, Order, logical, permuted
from hexqdq.numerics import IDENTITY, Rescale, to_tosa, tosa_offset
from hexqdq.ops.unit import Array, QuantUnit, Tensor


class Requantization(Protocol):
    """The part of a plan that brings i32 values to the output's integers."""

    @property
    def rescale(self) -> Rescale: ...

    @property
    def output_zero_point(self) -> int: ...

    @property
    def low(self) -> int: ...

    @property
    def high(self) -> int: ...


class Scope:
    """The state of lowering one segment."""

    def __init__(self, name: str) -> None:
        self.builder = Builder(name)
        self.layouts = Layouts(self.builder)

    def input(self, tensor: Tensor) -> None:
        """Declare a segment input."""
        self.layouts.set(tensor.name, logical(len(tensor.shape)), self.builder.input(tensor.shape, "i8"))

    def order(self, unit: QuantUnit) -> Order:
        """The order that most of the variable inputs of the output's rank exist in; of rank 1 for a scalar.

        It is ONNX's own where only constants have that rank.
        """
        rank = len(unit.outputs[0].shape)
        full = [tensor.name for tensor in unit.variable_inputs() if len(tensor.shape) == rank]
        return (self.layouts.common(full) if full else logical(rank)) or (0,)

    def operand(self, unit: QuantUnit, index: int, order: Order) -> Value:
        """Input ``index`` in ``order``; leading dimensions of 1 are added where its rank is smaller."""
        tensor = unit.input(index)
        shape = (1,) * (len(order) - len(tensor.shape)) + tensor.shape
        if unit.is_constant(index):
            stored = to_tosa(unit.constant(index), tensor.dtype).reshape(shape).transpose(order)
            return self.builder.argument(f"{tensor.name}:{_letters(order)}", stored)
        if len(tensor.shape) == len(order):
            return self.layouts.get(tensor.name, order)
        flat = self.layouts.get(tensor.name, logical(len(tensor.shape)))
        widened = self.builder.view(flat, shape)
        return instructions.reorder(self.builder, widened, order)

    def weight(self, unit: QuantUnit, form: str, values: Array) -> Value:
        """Weights in a layout as an argument, one for all units that store and read the same."""
        params = unit.input(1).params
        points = params.zero_point if params else ()
        shown = points[:1] if len(set(points)) == 1 else points
        over = f" over {'_'.join(map(str, shown))}" if any(points) else ""
        return self.builder.argument(f"{unit.input(1).name}{over}:{form}", values)

    def widened(self, value: Value, zero_point: int, tensor: Tensor) -> Value:
        """An 8-bit value as i32 above its zero point."""
        offset = zero_point + tosa_offset(tensor.dtype)
        return instructions.rescale(self.builder, value, IDENTITY, (offset, 0), "i32")

    def requantized(self, value: Value, plan: Requantization, tensor: Tensor, zero_point: int = 0) -> Value:
        """``value`` above ``zero_point`` to the 8-bit integers of ``tensor``, inside the plan's bounds."""
        offset = tosa_offset(tensor.dtype)
        zero_points = (zero_point, plan.output_zero_point + offset)
        result = instructions.rescale(self.builder, value, plan.rescale, zero_points, "i8")
        if (plan.low, plan.high) == (tensor.dtype.low, tensor.dtype.high):
            return result
        return instructions.clamp(self.builder, result, plan.low + offset, plan.high + offset)

    def store(self, tensor: Tensor, order: Order, value: Value) -> None:
        """Record a unit's output; its shape must be the tensor's in ``order``, or [1] for a scalar."""
        if not tensor.shape:
            order, value = (), self.builder.view(value, ())
        assert value.shape == permuted(tensor.shape, order), (tensor, order, value)
        self.layouts.set(tensor.name, order, value)

    def filled(self, number: int, rank: int) -> Value:
        """An i32 constant of ``rank`` dimensions of 1."""
        return self.builder.constant(np.full((1,) * rank, number, np.int32))

    def returned(self, tensors: Sequence[Tensor]) -> list[Value]:
        """The segment's outputs in ONNX order, each a result of its own (an identity where it is not)."""
        results: list[Value] = []
        for tensor in tensors:
            value = self.layouts.get(tensor.name, logical(len(tensor.shape)))
            if value in results or self.builder.is_input(value):
                value = self.builder.operation("identity", (value,), "", value.shape, value.element)
            results.append(value)
        return results


def _letters(order: Order) -> str:
    return "".join(map(str, order))
