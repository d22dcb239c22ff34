"""Tasks for the development scorer: how often a classifier's largest output is where --second has it.

    python evaluate.py same-imagenet model.ctx --runtime hexqdq --second model.qdq.onnx --tasks-from THIS

The samples are those that the task itself scores.
"""

from __future__ import annotations

from typing import Any

from tasks import TASKS as KNOWN
from tasks import EvalError, Options, Score, Session, Task

CLASSIFIERS = ("imagenet", "cifar10", "mnist")


class Both:
    """A session that also runs the second model and counts the same places."""

    def __init__(self, first: Session, second: Session) -> None:
        self.first, self.second = first, second
        self.inputs, self.outputs = first.inputs, first.outputs
        self.same = self.runs = 0

    def __call__(self, values: Any) -> Any:
        ours, theirs = self.first(values), self.second(values)
        self.same += int(ours.argmax() == theirs.argmax())
        self.runs += 1
        return ours


class SamePlaces(Task):
    """Share of scored samples whose largest output is where --second has it."""

    calibration_split = "none"

    def __init__(self, task: Task) -> None:
        self.task = task
        self.name = f"same-{task.name}"
        self.default_model = None

    def score(self, session: Session, options: Options) -> Score:
        if options.second is None:
            raise EvalError(f"{self.name} needs --second REFERENCE.onnx")
        both = Both(session, Session(options.second, "ort", options.threads))
        self.task.score(both, options)
        return Score("same_argmax", both.same / both.runs, both.runs)

    def calibration(self, session: Session, options: Options, count: int) -> Any:
        raise EvalError(f"{self.name} has no calibration samples")


TASKS = [SamePlaces(KNOWN[name]) for name in CLASSIFIERS]
