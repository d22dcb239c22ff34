"""InferenceSession: runs a context, or a QDQ model compiled to one, behaving as onnxruntime's."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq.app.io_binding import IOBinding
from hexqdq.app.session_options import PROVIDER, PROVIDERS, Provider, SessionOptions, parse_options
from hexqdq.app.session_source import CachedModel, is_model
from hexqdq.context import file
from hexqdq.context.executors import make_executor
from hexqdq.context.executors.base import Counters
from hexqdq.context.product import Context, HostCall
from hexqdq.context.run import Runner
from hexqdq.errors import ContextError, InputError, UnsupportedError, UsageError
from hexqdq.ops.unit import Tensor
from hexqdq.qtypes import QType

Array = NDArray[Any]

TYPE_NAMES = {
    QType.F32: "tensor(float)",
    QType.U8: "tensor(uint8)",
    QType.S8: "tensor(int8)",
    QType.U16: "tensor(uint16)",
    QType.S16: "tensor(int16)",
    QType.S32: "tensor(int32)",
    QType.S64: "tensor(int64)",
}
"""Element types as onnxruntime spells them."""


@dataclass(frozen=True)
class NodeArg:
    """An input or output of the model: its name, shape and type."""

    name: str
    shape: list[int]
    type: str


@dataclass(frozen=True)
class ModelMetadata:
    """What the context says about itself, in onnxruntime's words."""

    producer_name: str
    graph_name: str
    description: str
    domain: str = ""
    graph_description: str = ""
    version: int = 0
    custom_metadata_map: Mapping[str, str] = field(default_factory=dict)


class InferenceSession:
    """A loaded model; ``run`` may be called from many threads.

    Takes the path or bytes of a context, or of a QDQ model, which is compiled once and then comes
    from the cache. ``provider_options`` is a list of one dict with any of ``executor`` (auto,
    reference, host, qemu), ``target``, ``cache_dir``, ``threads`` (of the CPU parts) and
    ``disable_cpu_fallback``. Raises UsageError for an unknown option, ContextError for a file that
    is not a whole context, ExecutorError where the executor is not available.
    """

    def __init__(
        self,
        path_or_bytes: str | os.PathLike[str] | bytes,
        sess_options: Any = None,
        providers: Sequence[Provider] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        self._options = parse_options(providers, provider_options)
        self._session_options = _cpu_options(sess_options, self._options.threads)
        source = bytes(path_or_bytes) if isinstance(path_or_bytes, bytes | bytearray) else Path(path_or_bytes)
        self._runner = self._compiled(source) if is_model(source) else self._load(source)
        self._inputs = {tensor.name: tensor for tensor in self.context.inputs}

    @property
    def context(self) -> Context:
        """The context that the session runs."""
        return self._runner.context

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: Any = None
    ) -> list[Array]:
        """The named outputs, all where None; raises InputError where a feed does not fit."""
        known = [tensor.name for tensor in self.context.outputs]
        names = list(output_names) if output_names else known
        for name in names:
            if name not in known:
                raise InputError(
                    f"output {name!r}", f"is not one of the model's: {', '.join(known)}", "name one of them"
                )
        feeds = self._checked(input_feed)
        results = self._runner.run(feeds)
        return [results[name].copy() if name in feeds else results[name] for name in names]

    def get_inputs(self) -> list[NodeArg]:
        return [_node_arg(tensor) for tensor in self.context.inputs]

    def get_outputs(self) -> list[NodeArg]:
        return [_node_arg(tensor) for tensor in self.context.outputs]

    def get_modelmeta(self) -> ModelMetadata:
        context = self.context
        versions = {f"version.{name}": version for name, version in context.versions.items()}
        return ModelMetadata(
            producer_name="hexqdq",
            graph_name=Path(context.source).stem,
            description=f"compiled for {context.target}",
            custom_metadata_map={"target": context.target, "digest": context.digest, **versions},
        )

    def get_providers(self) -> list[str]:
        return list(PROVIDERS)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The options of each provider as text, those not given at their defaults."""
        ours = {name: str(value) for name, value in asdict(self._options).items() if value is not None}
        return {name: ours if name == PROVIDER else {} for name in PROVIDERS}

    def io_binding(self) -> IOBinding:
        return IOBinding(self.context.inputs, self.context.outputs)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: Any = None) -> None:
        """Runs with the bound inputs and puts the outputs where they are bound."""
        iobinding.run(self.run)

    def last_counters(self) -> dict[str, Counters]:
        """Per segment what its latest run executed, where the executor counts (qemu)."""
        return self._runner.last_counters()

    def close(self) -> None:
        """Ends what the session started; collecting the session does the same."""
        self._runner.close()

    def _compiled(self, model: Path | bytes) -> Runner:
        """The model's context from the cache; one that is found damaged is compiled again."""
        cached = CachedModel(model, self._options.target, self._options.cache_dir)
        path = cached.context_path()
        try:
            return self._load(path)
        except ContextError:
            cached.discard()
            return self._load(cached.context_path())

    def _load(self, source: Path | bytes) -> Runner:
        context = file.read(source)
        _check_options(context, self._options)
        return Runner(context, make_executor(self._options.executor), self._session_options)

    def _checked(self, feed: Any) -> dict[str, Array]:
        if not isinstance(feed, Mapping):
            problem = f"is a {type(feed).__name__}; expected a dictionary of arrays by input name"
            raise InputError("input feed", problem, f"give {{{', '.join(f'{name!r}: ...' for name in self._inputs)}}}")
        for name in feed:
            if name not in self._inputs:
                raise InputError(
                    f"input {name!r}", f"is not one of the model's: {', '.join(self._inputs)}", "name one of them"
                )
        missing = [name for name in self._inputs if name not in feed]
        if missing:
            tensor = self._inputs[missing[0]]
            problem = f"is missing; expected {tensor.dtype.numpy} {tensor.shape}"
            raise InputError(f"input {missing[0]!r}", problem, f"give every input: {', '.join(self._inputs)}")
        return {name: _fitting(tensor, feed[name]) for name, tensor in self._inputs.items()}


def _cpu_options(session_options: Any, threads: int | None) -> Any:
    """onnxruntime's SessionOptions for the parts on the CPU, made only where there is something to say."""
    if threads is None:
        return session_options
    if session_options is not None:
        problem = "given together with sess_options; expected one of them"
        raise UsageError("provider option 'threads'", problem, "set sess_options.intra_op_num_threads")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return options


def _check_options(context: Context, options: SessionOptions) -> None:
    if options.target is not None and options.target != context.target:
        problem = f"is compiled for {context.target}; expected {options.target}"
        raise ContextError(context.source, problem, f"compile the model with --target {options.target}")
    on_cpu = [call.name for call in context.calls if isinstance(call, HostCall)]
    if options.disable_cpu_fallback and on_cpu:
        nodes = [decision.node for decision in context.decisions if decision.segment is None]
        problem = f"has parts that run on the CPU ({', '.join(nodes or on_cpu)}), and disable_cpu_fallback is set"
        raise UnsupportedError(context.source, problem, "`hexqdq explain` says why each node stays there")


def _node_arg(tensor: Tensor) -> NodeArg:
    return NodeArg(tensor.name, list(tensor.shape), TYPE_NAMES[tensor.dtype])


def _fitting(tensor: Tensor, value: Any) -> Array:
    """The feed as an array of exactly the input's type and shape; an OrtValue gives its numpy form."""
    array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    if array.dtype != tensor.dtype.numpy or array.shape != tensor.shape:
        found = f"{array.dtype} {array.shape}"
        problem = f"got {found}; expected {tensor.dtype.numpy} {tensor.shape}"
        raise InputError(f"input {tensor.name!r}", problem, "give what the model takes: convert with astype, reshape")
    return array
