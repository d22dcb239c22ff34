"""onnxruntime sessions of models whose values are watched, the same to the bit on any number of threads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from hexqdq.errors import CalibrationError

_SHARED_BYTES = 1 << 16
_PACKED_BYTES = 1 << 29
"""Larger weights are not packed for speed: that takes longer than it saves in the runs of a calibration."""


class WatchedSession:
    """Runs the model with ``names``, values that nodes make, among its outputs; several runs at once may.

    One thread a run: with more, onnxruntime splits some sums by the number of threads, which changes
    their last bits.
    """

    def __init__(self, model: ir.Model, names: Sequence[str]) -> None:
        import onnxruntime

        self._names = list(names)
        watched = _watching(model, names)
        self._weights = _without_weights(watched)  # onnxruntime reads them in place: they live as long as the session
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.enable_mem_pattern = False  # plans of parallel runs add up to more than they save
        if sum(values.nbytes for values in self._weights.values()) > _PACKED_BYTES:
            options.add_session_config_entry("session.disable_prepacking", "1")
        given = [onnxruntime.OrtValue.ortvalue_from_numpy(values) for values in self._weights.values()]
        options.add_external_initializers(list(self._weights), given)
        data = ir.to_proto(watched).SerializeToString()
        self._session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])

    @property
    def threads(self) -> int:
        """Of one run."""
        return int(self._session.get_session_options().intra_op_num_threads)

    def run(self, feeds: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
        """The named values, in their order."""
        with _running():
            return list(self._session.run(self._names, dict(feeds)))

    def run_into(self, feeds: Mapping[str, NDArray[Any]], buffers: Sequence[NDArray[Any]]) -> None:
        """Writes the named values into buffers of their shapes and types; those of no size are left."""
        binding = self._session.io_binding()
        for name, values in feeds.items():
            binding.bind_cpu_input(name, np.ascontiguousarray(values))
        for name, buffer in zip(self._names, buffers, strict=True):
            if buffer.size:
                place = buffer.ctypes.data
                binding.bind_output(name, "cpu", 0, buffer.dtype.type, buffer.shape, place)
        with _running():
            self._session.run_with_iobinding(binding)


@contextmanager
def _running() -> Iterator[None]:
    """Turns what onnxruntime says of a run into an error with a next step."""
    try:
        yield
    except Exception as error:
        problem = f"fails in onnxruntime: {' '.join(str(error).split())}"
        raise CalibrationError("the float model", problem, "run it on this sample with onnxruntime") from error


def _watching(model: ir.Model, names: Sequence[str]) -> ir.Model:
    watched = model.clone()
    listed = {value.name for value in watched.graph.outputs}
    values = {v.name: v for node in watched.graph for v in node.outputs}
    watched.graph.outputs.extend(values[name] for name in names if name not in listed)
    return watched


def _without_weights(model: ir.Model) -> dict[str, NDArray[Any]]:
    """Takes larger float32 initializers out of the model, to be given to the session as they lie in memory."""
    taken = {}
    for value in list(model.graph.initializers.values()):
        if not value.uses() and not value.is_graph_output():
            del model.graph.initializers[str(value.name)]  # onnxruntime drops it before it looks for its weights
            continue
        tensor = value.const_value
        if tensor is None or tensor.dtype != ir.DataType.FLOAT or tensor.nbytes < _SHARED_BYTES:
            continue
        name = str(value.name)
        taken[name] = np.ascontiguousarray(tensor.numpy())
        shape = ir.Shape(tensor.shape.numpy())
        value.const_value = ir.ExternalTensor("weights", 0, tensor.nbytes, tensor.dtype, shape=shape, name=name)
    return taken
