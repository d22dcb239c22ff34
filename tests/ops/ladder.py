"""The ladder: float op -> QDQ in onnxruntime -> numpy reference -> TOSA reference model -> host -> qemu.

From the reference on every stage must give the same integers. onnxruntime's QDQ model may be one step
away; the share that is gets counted and printed when the tests end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

import numpy as np
from hypothesis import assume, settings

from hexqdq.compile.tosa import lower_segment
from hexqdq.context.executors.base import Executor
from hexqdq.numerics import dequantize, quantize
from hexqdq.ops import OPS, reference
from hexqdq.ops.unit import Array, Tensor, UnitGraph
from hexqdq.target import DEFAULT_TARGET, find_target, host_targets
from tests.ops.cases import Case, feeds_of
from tests.ops.stages.qdq_model import QdqWriter
from tests.ops.stages.tosa_model import TosaModel

TARGET = find_target(DEFAULT_TARGET)
ALL = os.environ.get("HEXQDQ_TEST_ALL") == "1"
FEW = settings(max_examples=40 if ALL else 3, deadline=None, derandomize=not ALL)
"""For drawn cases that are compiled: half a second each."""
Feeds = Mapping[str, Array]
Run = Callable[[Feeds], Sequence[Array]]


@dataclass
class Tally:
    """Elements compared with onnxruntime, and how many were a step away."""

    elements: int = 0
    differing: int = 0

    def add(self, other: Tally) -> None:
        """Count another tally in."""
        self.elements += other.elements
        self.differing += other.differing

    def __str__(self) -> str:
        share = 100 * self.differing / self.elements if self.elements else 0.0
        return f"{self.differing} of {self.elements} elements differ by one step ({share:.3f} %)"


TALLIES: dict[str, Tally] = {}
"""By op type; tests/ops/conftest.py prints it."""


def _session(model: bytes) -> Callable[[Feeds], list[Array]]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda feeds: list(session.run(None, dict(feeds)))


def onnxruntime_stage(graph: UnitGraph) -> Run:
    """The QDQ model as onnxruntime computes it in float."""
    return _session(QdqWriter().model(graph).SerializeToString())


def float_stage(graph: UnitGraph) -> Run:
    """The float op on dequantized inputs; its result quantized on leaving."""
    run = _session(QdqWriter(is_float=True).model(graph).SerializeToString())

    def real(tensor: Tensor, values: Array) -> Array:
        assert tensor.params is not None
        return np.asarray(dequantize(values, tensor.params))

    def stage(feeds: Feeds) -> list[Array]:
        results = run({tensor.name: real(tensor, feeds[tensor.name]) for tensor in graph.inputs})
        outputs = zip(results, graph.outputs, strict=True)
        return [np.asarray(quantize(v, tensor.params)) if tensor.params is not None else v for v, tensor in outputs]

    return stage


def reference_stage(graph: UnitGraph) -> Run:
    """The numpy definition of the ops."""
    return lambda feeds: list(reference.run(graph, feeds).values())


@contextmanager
def tosa_stage(graph: UnitGraph) -> Iterator[Run]:
    """Our TOSA text through Arm's reference model."""
    with closing(TosaModel(lower_segment(graph))) as model:
        yield lambda feeds: model.run([feeds[tensor.name] for tensor in graph.inputs])


def climb(case: Case) -> None:
    """Compare every stage up to the TOSA reference model on every feed."""
    graph = case.graph
    in_float, in_qdq, defined = float_stage(graph), onnxruntime_stage(graph), reference_stage(graph)
    for feeds in feeds_of(graph):
        within_one_step(case, in_qdq(feeds), in_float(feeds))
        expected = defined(feeds)
        differing = within_one_step(case, in_qdq(feeds), expected)
        elements = sum(values.size for values in expected)
        TALLIES.setdefault(case.op_type, Tally()).add(Tally(elements, differing))
    climb_integers(case)


def climb_integers(case: Case) -> None:
    """Compare the stages that compute on integers: no element may differ."""
    defined = reference_stage(case.graph)
    with tosa_stage(case.graph) as in_tosa:
        for feeds in feeds_of(case.graph):
            same(case, "the TOSA reference model", in_tosa(feeds), defined(feeds))


def climb_compiled(case: Case) -> None:
    """Compare the shared objects, in this process and under qemu: no element may differ."""
    from hexqdq.compile.pipeline import compile_segment

    graph = case.graph
    segment = compile_segment(lower_segment(graph), graph, TARGET, host_targets(), None)
    defined = reference_stage(graph)
    for executor, key in _places():
        alone = replace(segment, objects={key: segment.objects[key]})
        with closing(executor.load(alone)) as loaded:
            for feeds in feeds_of(graph):
                found = loaded.run([feeds[tensor.name] for tensor in graph.inputs])
                same(case, f"{executor.name} {key}", found, defined(feeds))


def _places() -> list[tuple[Executor, str]]:
    """Every executor with the key of an object that it can run here: all host rows of this CPU, then qemu."""
    from hexqdq.context.executors.host import HostExecutor, cpu_flags
    from hexqdq.context.executors.qemu import QemuExecutor

    hosts = [row.object_key for row in host_targets() if row.cpu_flags <= cpu_flags()]
    return [*((HostExecutor(), key) for key in hosts), (QemuExecutor(), TARGET.object_key)]


def accepted(case: Case) -> Case:
    """The case where partition would take its units; hypothesis draws another where not."""
    for unit in case.graph.units:
        assume(OPS[unit.op_type].refusal(unit, TARGET) is None)
    return case


def sampled(cases: Sequence[Case]) -> list[Case]:
    """All cases where whole grids are asked for, else the first of each op type and every fifth."""
    if ALL:
        return list(cases)
    first = {case.op_type: case for case in reversed(cases)}
    return [case for index, case in enumerate(cases) if index % 5 == 0 or case is first[case.op_type]]


def within_one_step(case: Case, found: Sequence[Array], expected: Sequence[Array]) -> int:
    """How many elements differ; fails where one differs by more than one step."""
    differing = 0
    for ours, theirs in zip(expected, found, strict=True):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype, (str(case), ours.shape, theirs.shape)
        steps = np.abs(ours.astype(np.int64) - theirs.astype(np.int64))
        assert steps.max(initial=0) <= 1, f"{case}: {steps.max()} steps from onnxruntime"
        differing += int(np.count_nonzero(steps))
    return differing


def same(case: Case, stage: str, found: Sequence[Array], expected: Sequence[Array]) -> None:
    """Fails where one element differs."""
    assert len(found) == len(expected)
    for ours, theirs in zip(expected, found, strict=True):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype, (str(case), stage)
        differing = int(np.count_nonzero(ours != theirs))
        assert differing == 0, f"{case}: {stage} differs from the reference in {differing} of {ours.size} elements"
