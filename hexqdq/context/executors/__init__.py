"""Where a segment runs: the numpy reference, this machine, or a Hexagon under qemu."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hexqdq.context.executors.base import Executor
from hexqdq.context.executors.host import HostExecutor
from hexqdq.context.executors.qemu import QemuExecutor
from hexqdq.context.executors.reference import ReferenceExecutor
from hexqdq.errors import UsageError

EXECUTORS: Mapping[str, Callable[[], Executor]] = {
    ReferenceExecutor.name: ReferenceExecutor,
    HostExecutor.name: HostExecutor,
    QemuExecutor.name: QemuExecutor,
}
AUTO = "auto"
"""The fastest executor that is exact on this machine: the host."""
EXECUTOR_NAMES = (AUTO, *EXECUTORS)
"""The values of the option ``executor``."""


def make_executor(name: str) -> Executor:
    """The executor of that name; raises UsageError with the valid ones."""
    factory = EXECUTORS.get(HostExecutor.name if name == AUTO else name)
    if factory is None:
        raise UsageError(
            f"executor {name!r}", f"unknown; expected one of {', '.join(EXECUTOR_NAMES)}", "name one of them"
        )
    return factory()
