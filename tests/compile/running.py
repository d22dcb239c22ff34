"""Compiled segments run on every object, against Arm's reference model."""

from __future__ import annotations

from contextlib import closing

import numpy as np

from hexqdq.compile.pipeline import compile_segment
from hexqdq.compile.product import CompiledSegment, TosaSegment
from hexqdq.ops.unit import Array
from hexqdq.target import DEFAULT_TARGET, find_target, host_targets
from tests.compile.segments import feeds_for
from tests.ops.stages.tosa_model import TosaModel


def compiled(segment: TosaSegment) -> CompiledSegment:
    return compile_segment(segment, None, find_target(DEFAULT_TARGET), host_targets())


def results(segment: CompiledSegment, feeds: list[Array]) -> dict[str, list[Array]]:
    """Outputs by object: every host object that this machine runs, and Hexagon's under qemu."""
    from hexqdq.context.executors.host import HostExecutor
    from hexqdq.context.executors.qemu import QemuExecutor

    found = {}
    for key in segment.objects:
        alone = CompiledSegment(
            segment.name, None, segment.tosa, segment.steps, {key: segment.objects[key]}, segment.constants
        )
        executor = QemuExecutor() if key == "hexagon" else HostExecutor()
        with closing(executor.load(alone)) as loaded:
            found[key] = loaded.run(feeds)
    return found


def check(segment: TosaSegment) -> CompiledSegment:
    """Every object gives the reference model's integers."""
    made = compiled(segment)
    with closing(TosaModel(segment)) as model:
        for seed in range(2):
            feeds = feeds_for(segment, seed)
            expected = model.run(feeds)
            for key, outputs in results(made, feeds).items():
                for index, (found, wanted) in enumerate(zip(outputs, expected, strict=True)):
                    differing = int(np.count_nonzero(found != wanted))
                    assert differing == 0, f"{key} output {index}: {differing} of {wanted.size} elements differ"
    return made
