"""Builder: writes one TOSA function as text, constants first, each value with its static type."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hexqdq.ops.unit import Array

Shape = tuple[int, ...]

ELEMENTS: Mapping[str, str] = {"int8": "i8", "int16": "i16", "int32": "i32"}


@dataclass(frozen=True)
class Value:
    """An SSA value: its name with the percent sign, its static shape and its MLIR element type."""

    name: str
    shape: Shape
    element: str

    @property
    def type(self) -> str:
        return tensor_type(self.shape, self.element)


@dataclass(frozen=True)
class Line:
    """An operation with the names it defines and reads, or a comment, which defines none."""

    text: str
    result: str = ""
    operands: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.result} = {self.text}" if self.result else self.text


def tensor_type(shape: Shape, element: str) -> str:
    """``tensor<2x3xi8>``; a scalar is ``tensor<i8>``."""
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def dense(values: Array) -> str:
    """An MLIR dense literal: one number where all are equal, nested lists otherwise."""
    flat = values.reshape(-1)
    if flat.size and (flat == flat[0]).all():
        return f"dense<{flat[0]}>"
    return f"dense<{values.tolist()}>"


def symbol(name: str) -> str:
    """The name as an MLIR symbol: letters, digits and underscores."""
    cleaned = re.sub(r"\W", "_", name, flags=re.ASCII)
    return cleaned if cleaned and not cleaned[0].isdigit() else f"segment_{cleaned}"


class Builder:
    """Collects the arguments, constants and operations of one function.

    Inputs come first in the signature, then constant arguments in the order of their first use.
    Equal constants and equal argument keys are written once.
    """

    def __init__(self, name: str) -> None:
        self.name = symbol(name)
        self._inputs: list[Value] = []
        self._arguments: dict[str, tuple[Value, Array]] = {}
        self._constants: dict[str, Value] = {}
        self._lines: list[Line] = []
        self._count = 0
        self._views: dict[str, Value] = {}

    def input(self, shape: Shape, element: str) -> Value:
        """A further input of the function."""
        value = Value(f"%in{len(self._inputs)}", shape, element)
        self._inputs.append(value)
        return value

    def argument(self, key: str, values: Array) -> Value:
        """The constant argument of that key; ``values`` are bound to it at load time."""
        if key not in self._arguments:
            value = Value(f"%arg{len(self._arguments)}", values.shape, ELEMENTS[values.dtype.name])
            self._arguments[key] = (value, np.ascontiguousarray(values).reshape(values.shape))
        value, bound = self._arguments[key]
        assert np.array_equal(bound, values), key
        return value

    @property
    def arguments(self) -> tuple[tuple[str, Array], ...]:
        """The constant arguments by key, in the order of the signature."""
        return tuple((key, values) for key, (_, values) in self._arguments.items())

    def is_input(self, value: Value) -> bool:
        """Whether the value is an argument of the function rather than a result."""
        return value.name.startswith(("%in", "%arg"))

    def constant(self, values: Array) -> Value:
        """A ``tosa.const`` of an int8, int16 or int32 array."""
        element = ELEMENTS[values.dtype.name]
        type_ = tensor_type(values.shape, element)
        text = f'"tosa.const"() {{values = {dense(values)} : {type_}}} : () -> {type_}'
        return self._constant(text, values.shape, element)

    def scalar(self, value: int, element: str) -> Value:
        """A ``tensor<1x...>`` constant, as zero points and shifts are given."""
        types: Mapping[str, type[np.generic]] = {"i8": np.int8, "i16": np.int16, "i32": np.int32}
        return self.constant(np.array([value], types[element]))

    def shape_constant(self, sizes: Sequence[int]) -> Value:
        """A ``!tosa.shape`` constant; its ``element`` holds the whole type."""
        values: NDArray[np.int64] = np.array(sizes, np.int64)
        type_ = f"!tosa.shape<{len(sizes)}>"
        text = f"tosa.const_shape {{values = {dense(values)} : tensor<{len(sizes)}xindex>}} : () -> {type_}"
        return self._constant(text, (len(sizes),), type_)

    def operation(self, name: str, operands: Sequence[Value], attributes: str, shape: Shape, element: str) -> Value:
        """Append ``tosa.<name>`` with one result."""
        result = Value(f"%{self._count}", shape, element)
        self._count += 1
        names = tuple(operand.name for operand in operands)
        types = ", ".join(_operand_type(operand) for operand in operands)
        braces = f" {{{attributes}}}" if attributes else ""
        text = f"tosa.{name} {', '.join(names)}{braces} : ({types}) -> {result.type}"
        self._lines.append(Line(text, result.name, names))
        return result

    def view(self, source: Value, shape: Shape) -> Value:
        """``source`` under another shape by RESHAPE; views of views start from the first value."""
        origin = self._views.get(source.name, source)
        if origin.shape == shape:
            return origin
        operands = (origin, self.shape_constant(shape))
        result = self.operation("reshape", operands, "", shape, origin.element)
        self._views[result.name] = origin
        return result

    def comment(self, text: str) -> None:
        """A line that says which unit the following operations stand for."""
        self._lines.append(Line(f"// {' '.join(text.split())}"))

    def text(self, outputs: Sequence[Value]) -> str:
        """The module with its one function, returning ``outputs``; what they do not need is left out."""
        bound = [value for value, _ in self._arguments.values()]
        parameters = ", ".join(f"{value.name}: {value.type}" for value in (*self._inputs, *bound))
        types = ", ".join(output.type for output in outputs)
        names = ", ".join(output.name for output in outputs)
        lines = self._needed(outputs)
        body = "\n".join(f"    {line}" for line in (*lines, f"return {names} : {types}"))
        return f"module {{\n  func.func @{self.name}({parameters}) -> ({types}) {{\n{body}\n  }}\n}}\n"

    def _needed(self, outputs: Sequence[Value]) -> list[Line]:
        """The constants and operations that ``outputs`` depend on, in order, and every comment."""
        constants = [Line(text, value.name) for text, value in self._constants.items()]
        used = {output.name for output in outputs}
        kept: list[Line] = []
        for line in reversed([*constants, *self._lines]):
            if not line.result or line.result in used:
                used.update(line.operands)
                kept.append(line)
        return kept[::-1]

    def _constant(self, text: str, shape: Shape, element: str) -> Value:
        if text not in self._constants:
            self._constants[text] = Value(f"%c{len(self._constants)}", shape, element)
        return self._constants[text]


def _operand_type(value: Value) -> str:
    return value.element if value.element.startswith("!") else value.type
