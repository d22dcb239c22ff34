"""IOBinding as onnxruntime has it, for arrays of this process's memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq.errors import InputError, UsageError
from hexqdq.ops.unit import Tensor

Array = NDArray[Any]
Run = Callable[[Sequence[str], Mapping[str, Array]], list[Array]]

CPU = "cpu"
FITTING = "bind what the model takes and gives"


@dataclass(frozen=True)
class _Place:
    """Where a bound output goes: an address in memory, or a new array."""

    address: int | None


class IOBinding:
    """Inputs and outputs bound by name, to run many times without naming them again."""

    def __init__(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
        self._known_inputs = {tensor.name: tensor for tensor in inputs}
        self._known_outputs = {tensor.name: tensor for tensor in outputs}
        self._inputs: dict[str, Array] = {}
        self._places: dict[str, _Place] = {}
        self._results: list[Array] = []

    def bind_cpu_input(self, name: str, arr_on_cpu: Array) -> None:
        """Binds an array, which is read when the session runs."""
        _known(self._known_inputs, name, "input")
        self._inputs[name] = arr_on_cpu

    def bind_output(
        self,
        name: str,
        device_type: str = CPU,
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Binds an output to a new array, or to ``buffer_ptr``, memory of the tensor's size."""
        tensor = _known(self._known_outputs, name, "output")
        if (device_type, device_id) != (CPU, 0):
            raise UsageError(f"device {device_type}:{device_id}", f"unknown; expected {CPU}:0", f"bind to {CPU}")
        if shape is not None and tuple(shape) != tensor.shape:
            raise InputError(name, f"bound with shape {tuple(shape)}; expected {tensor.shape}", FITTING)
        if element_type is not None and np.dtype(element_type) != tensor.dtype.numpy:
            raise InputError(name, f"bound with type {np.dtype(element_type)}; expected {tensor.dtype.numpy}", FITTING)
        self._places[name] = _Place(buffer_ptr)

    def run(self, run: Run) -> None:
        """Runs and puts each output where it is bound."""
        self._results = run(list(self._places), self._inputs)
        for place, result in zip(self._places.values(), self._results, strict=True):
            if place.address is not None:
                dense = np.ascontiguousarray(result)
                ctypes.memmove(place.address, dense.ctypes.data, dense.nbytes)

    def copy_outputs_to_cpu(self) -> list[Array]:
        """The outputs of the latest run, in the order in which they were bound."""
        return [result.copy() for result in self._results]

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._places.clear()
        self._results = []

    def synchronize_inputs(self) -> None:
        """Nothing to wait for: inputs are in this process's memory."""

    def synchronize_outputs(self) -> None:
        """Nothing to wait for: a run has ended when it returns."""


def _known(tensors: Mapping[str, Tensor], name: str, what: str) -> Tensor:
    if name not in tensors:
        raise InputError(f"{what} {name!r}", f"is not one of the model's: {', '.join(tensors)}", "name one of them")
    return tensors[name]
