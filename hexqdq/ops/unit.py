"""QuantUnit: one integer operation as partition makes it, compile lowers it and the reference runs it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq.errors import ContextError
from hexqdq.qtypes import QType, QuantParams

Array = NDArray[Any]
Attribute = int | float | str | tuple[int, ...] | tuple[float, ...]


@dataclass(frozen=True)
class Tensor:
    """A named tensor of static shape; ``params`` is None where it holds bare integers or floats."""

    name: str
    shape: tuple[int, ...]
    dtype: QType
    params: QuantParams | None = None

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.numpy.itemsize

    def to_json(self) -> dict[str, Any]:
        params = self.params.to_json() if self.params else None
        return {"name": self.name, "shape": list(self.shape), "dtype": self.dtype.label, "params": params}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Tensor:
        params = QuantParams.from_json(data["params"]) if data["params"] else None
        return cls(data["name"], tuple(data["shape"]), QType.from_label(data["dtype"]), params)


@dataclass(frozen=True)
class Clamp:
    """An activation folded into its producer: real bounds on the output, infinite where open."""

    low: float = -math.inf
    high: float = math.inf

    def to_json(self) -> list[float | None]:
        return [bound if math.isfinite(bound) else None for bound in (self.low, self.high)]

    @classmethod
    def from_json(cls, data: list[float | None]) -> Clamp:
        low, high = data
        return cls(-math.inf if low is None else low, math.inf if high is None else high)


@dataclass(frozen=True, eq=False)
class QuantUnit:
    """DQ* -> op -> (bias) -> (activation) -> Q as one operation on integers, or a data movement.

    ``inputs`` and ``outputs`` are in ONNX order, None for an optional input that is absent.
    Constant inputs have their integer values in ``constants`` by tensor name, in ONNX layout. A
    bias given as a following Add stands at the bias position (input 2) of MatMul. ``attributes``
    are ONNX's, defaults included where they matter. ``source_nodes`` are the model's nodes that
    the unit stands for.
    """

    name: str
    op_type: str
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    constants: Mapping[str, Array] = field(default_factory=dict)
    clamp: Clamp | None = None
    source_nodes: tuple[str, ...] = ()

    @property
    def output(self) -> Tensor:
        """The only output of a unit that has one."""
        (output,) = self.outputs
        return output

    def input(self, index: int) -> Tensor:
        """The input at an ONNX position; raises IndexError where it is absent."""
        tensor = self.inputs[index] if index < len(self.inputs) else None
        if tensor is None:
            raise IndexError(f"{self.op_type} {self.name} has no input {index}")
        return tensor

    def has_input(self, index: int) -> bool:
        return index < len(self.inputs) and self.inputs[index] is not None

    def is_constant(self, index: int) -> bool:
        return self.has_input(index) and self.input(index).name in self.constants

    def constant(self, index: int) -> Array:
        """The values of a constant input, in ONNX layout."""
        return self.constants[self.input(index).name]

    def variable_inputs(self) -> tuple[Tensor, ...]:
        """The inputs that are not constant, in order."""
        return tuple(t for t in self.inputs if t is not None and t.name not in self.constants)

    def to_json(self) -> dict[str, Any]:
        """Everything but the constants' values, which are stored by name elsewhere."""
        return {
            "name": self.name,
            "op_type": self.op_type,
            "inputs": [tensor.to_json() if tensor else None for tensor in self.inputs],
            "outputs": [tensor.to_json() for tensor in self.outputs],
            "attributes": {k: list(v) if isinstance(v, tuple) else v for k, v in self.attributes.items()},
            "constants": sorted(self.constants),
            "clamp": self.clamp.to_json() if self.clamp else None,
            "source_nodes": list(self.source_nodes),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], constants: Mapping[str, Array]) -> QuantUnit:
        """The unit of ``to_json``'s data; raises ContextError where a constant is missing."""
        missing = [name for name in data["constants"] if name not in constants]
        if missing:
            names = ", ".join(missing)
            raise ContextError(data["name"], f"constants {names} are missing; expected them beside the units")
        return cls(
            name=data["name"],
            op_type=data["op_type"],
            inputs=tuple(Tensor.from_json(t) if t else None for t in data["inputs"]),
            outputs=tuple(Tensor.from_json(t) for t in data["outputs"]),
            attributes={k: tuple(v) if isinstance(v, list) else v for k, v in data["attributes"].items()},
            constants={name: constants[name] for name in data["constants"]},
            clamp=Clamp.from_json(data["clamp"]) if data["clamp"] else None,
            source_nodes=tuple(data["source_nodes"]),
        )


@dataclass(frozen=True, eq=False)
class UnitGraph:
    """The units of one segment in topological order, with the tensors that cross its border."""

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    units: tuple[QuantUnit, ...]

    def constants(self) -> dict[str, Array]:
        """Every constant of the units by name."""
        return {name: values for unit in self.units for name, values in unit.constants.items()}

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "inputs": [tensor.to_json() for tensor in self.inputs],
            "outputs": [tensor.to_json() for tensor in self.outputs],
            "units": [unit.to_json() for unit in self.units],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], constants: Mapping[str, Array]) -> UnitGraph:
        return cls(
            data["name"],
            tuple(Tensor.from_json(t) for t in data["inputs"]),
            tuple(Tensor.from_json(t) for t in data["outputs"]),
            tuple(QuantUnit.from_json(u, constants) for u in data["units"]),
        )


def as_array(values: Array, tensor: Tensor) -> Array:
    """``values`` in the tensor's element type and shape, contiguous."""
    return np.ascontiguousarray(values, tensor.dtype.numpy).reshape(tensor.shape)
