"""Runs a context's parts in order over its named values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from hexqdq import numerics
from hexqdq.context.container import REBUILD
from hexqdq.context.executors.base import Counters, Executor, LoadedSegment
from hexqdq.context.product import Call, Context, HostCall, SegmentCall
from hexqdq.errors import ContextError, ExecutorError
from hexqdq.ops.unit import Tensor
from hexqdq.qtypes import QuantParams

Array = NDArray[Any]

RUN_ELSEWHERE = "run the whole model in onnxruntime to see whether it is at fault"


class LoadedCall(Protocol):
    """A part ready to run: it takes and gives the model's values in the part's order."""

    def run(self, inputs: Sequence[Array]) -> list[Array]: ...


@dataclass(frozen=True, eq=False)
class LoadedSegmentCall:
    """A segment with its float edges: quantized on the way in, dequantized on the way out."""

    call: SegmentCall
    segment: LoadedSegment

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        edges = zip(self.call.inputs, inputs, strict=True)
        integers = [
            numerics.quantize(values, _params(edge.tensor)) if edge.is_float else values for edge, values in edges
        ]
        results = zip(self.call.outputs, self.segment.run(integers), strict=True)
        return [
            numerics.dequantize(values, _params(edge.tensor)) if edge.is_float else values for edge, values in results
        ]


def _params(tensor: Tensor) -> QuantParams:
    if tensor.params is None:
        raise ContextError(tensor.name, "is a float edge without quantization parameters", "compile the model again")
    return tensor.params


class LoadedHostCall:
    """An ONNX part in onnxruntime on the CPU."""

    def __init__(self, call: HostCall, session_options: Any) -> None:
        self._call = call
        self._subject = f"CPU part {call.name!r}"
        try:
            import onnxruntime

            self._session = onnxruntime.InferenceSession(
                call.model, sess_options=session_options, providers=["CPUExecutionProvider"]
            )
        except ImportError as error:
            raise ExecutorError(self._subject, "needs onnxruntime to run", "install onnxruntime") from error
        except Exception as error:
            raise ExecutorError(self._subject, f"onnxruntime does not load it: {error}", RUN_ELSEWHERE) from error

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        feeds = dict(zip(self._call.inputs, inputs, strict=True))
        try:
            return list(self._session.run(list(self._call.outputs), feeds))
        except Exception as error:
            raise ExecutorError(self._subject, f"onnxruntime does not run it: {error}", RUN_ELSEWHERE) from error


def value_names(call: Call) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The model's values that a part reads and those that it writes."""
    if isinstance(call, HostCall):
        return call.inputs, call.outputs
    return tuple(edge.value for edge in call.inputs), tuple(edge.value for edge in call.outputs)


def last_uses(context: Context) -> list[tuple[str, ...]]:
    """Per part the values that nothing reads after it, and that the model does not return."""
    kept = {tensor.name for tensor in context.outputs}
    dead: list[tuple[str, ...]] = []
    for call in reversed(context.calls):
        reads, writes = value_names(call)
        ending = {*reads, *writes} - kept
        kept |= ending
        dead.append(tuple(sorted(ending)))
    return dead[::-1]


class Runner:
    """A context loaded on an executor; ``run`` may be called from many threads."""

    def __init__(self, context: Context, executor: Executor, session_options: Any = None) -> None:
        _check_order(context)
        self.context = context
        self._segments = {segment.name: executor.load(segment) for segment in context.segments}
        self._calls = [self._load(call, session_options) for call in context.calls]
        self._dead = last_uses(context)

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """The model's outputs by name, from its inputs by name, already of the right types and shapes."""
        values = {tensor.name: feeds[tensor.name] for tensor in self.context.inputs}
        for call, loaded, dead in zip(self.context.calls, self._calls, self._dead, strict=True):
            reads, writes = value_names(call)
            results = loaded.run([values[name] for name in reads])
            values.update(zip(writes, results, strict=True))
            for name in dead:
                del values[name]
        return {tensor.name: values[tensor.name] for tensor in self.context.outputs}

    def last_counters(self) -> dict[str, Counters]:
        """Per segment what its latest run executed, where the executor counts."""
        counted = ((name, segment.last_counters) for name, segment in self._segments.items())
        return {name: counters for name, counters in counted if counters is not None}

    def close(self) -> None:
        """Frees the segments and ends their processes."""
        for segment in self._segments.values():
            segment.close()

    def _load(self, call: Call, session_options: Any) -> LoadedCall:
        if isinstance(call, HostCall):
            return LoadedHostCall(call, session_options)
        return LoadedSegmentCall(call, self._segments[call.segment.name])


def _check_order(context: Context) -> None:
    """Every value is there before it is read; raises ContextError naming the first that is not."""
    known = {tensor.name for tensor in context.inputs}
    for call in context.calls:
        reads, writes = value_names(call)
        missing = [name for name in reads if name not in known]
        if missing:
            raise ContextError(context.source, f"value {missing[0]!r} is read before any part writes it", REBUILD)
        known |= set(writes)
    for tensor in context.outputs:
        if tensor.name not in known:
            raise ContextError(context.source, f"output {tensor.name!r} is written by no part", REBUILD)
