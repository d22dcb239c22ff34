"""The embedded digits model from float to a running context, on every executor that is here."""

from __future__ import annotations

import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq.app.convert import compile_to_file, quantize_to_file
from hexqdq.app.session import InferenceSession
from hexqdq.context.executors import EXECUTORS
from hexqdq.context.executors.qemu import QEMU
from hexqdq.errors import ModelError
from hexqdq.report import Cell, Decision, Measure, Progress, Table, decision_table, measure_table, share
from hexqdq.target import host_targets

Array = NDArray[Any]
Run = Callable[[dict[str, Array]], Array]

INPUT = "image"
QDQ_OPS = ("QuantizeLinear", "DequantizeLinear")


@dataclass(frozen=True, eq=False)
class Trial:
    """One way to run the held-out split: its outputs, load time and median latency in ms."""

    name: str
    outputs: Array
    load: float
    latency: float

    def accuracy(self, labels: Array) -> float:
        """Share of right answers in percent."""
        return 100.0 * float(np.mean(self.outputs.argmax(-1) == labels))


@dataclass(frozen=True, eq=False)
class DemoOutcome:
    """What the demo found; ``absent`` says why an executor did not run."""

    labels: Array
    baselines: tuple[Trial, ...]
    trials: tuple[Trial, ...]
    absent: tuple[tuple[str, str], ...]
    decisions: tuple[Decision, ...]
    measures: tuple[Measure, ...]

    @property
    def equal(self) -> bool:
        """Whether every executor gave the same bits."""
        return all(self.differing(trial) == 0 for trial in self.trials)

    @property
    def verdict(self) -> str:
        names = ", ".join(trial.name for trial in self.trials)
        count = self.trials[0].outputs.size
        lines = [
            f"{share(self.decisions)}; {count:,} outputs {'equal to the bit' if self.equal else 'DIFFER'} on {names}"
        ]
        return "\n".join(lines + [f"{name} did not run: {reason}" for name, reason in self.absent])

    def differing(self, trial: Trial) -> int:
        """How many outputs differ in any bit from the first executor's."""
        first = np.ascontiguousarray(self.trials[0].outputs).view(np.uint32)
        return int(np.count_nonzero(first != np.ascontiguousarray(trial.outputs).view(np.uint32)))

    def tables(self) -> tuple[Table, ...]:
        computing = [decision for decision in self.decisions if decision.op_type not in QDQ_OPS]
        return (
            decision_table(computing, "Where each node runs (Q and DQ nodes follow the nodes they serve)"),
            Table(f"Held-out split, {len(self.labels)} samples", COLUMNS, tuple(self._rows())),
            measure_table(self.measures, "Sizes and times"),
        )

    def to_json(self) -> dict[str, Any]:
        _, results, measures = self.tables()
        return {
            "samples": len(self.labels),
            "results": results.to_json(),
            "measures": measures.to_json(),
            "decisions": self.decisions,
            "equal": self.equal,
            "absent": dict(self.absent),
        }

    def _rows(self) -> Iterable[tuple[Cell, ...]]:
        for trial in self.baselines:
            yield (trial.name, trial.accuracy(self.labels), None, trial.load, trial.latency)
        for trial in self.trials:
            differing = self.differing(trial)
            yield (f"context, {trial.name}", trial.accuracy(self.labels), differing, trial.load, trial.latency)


COLUMNS = ("run by", "accuracy %", "differing outputs", "load ms", "median latency ms")


def run_demo(progress: Progress | None = None) -> DemoOutcome:
    """Quantizes, compiles and runs the embedded model; raises what those raise."""
    folder = model_folder("digits")
    with np.load(folder / "digits_heldout.npz") as held_out:
        images, labels = held_out["x"], held_out["y"]
    with tempfile.TemporaryDirectory(prefix="hexqdq-demo-") as work:
        qdq, context = Path(work) / "digits.qdq.onnx", Path(work) / "digits.ctx"
        quantized = quantize_to_file(folder / "digits.onnx", folder / "digits_calib.npz", qdq, progress=progress)
        compiled = compile_to_file(qdq, context, progress=progress)
        runs: dict[str, Callable[[], Run]] = {
            "float model, onnxruntime": partial(_onnxruntime, folder / "digits.onnx"),
            "QDQ model, onnxruntime": partial(_onnxruntime, qdq),
        }
        baselines = tuple(_trial(name, load, images, progress) for name, load in runs.items())
        absent = absent_executors()
        here = [name for name in EXECUTORS if name not in absent]
        trials = tuple(_trial(name, partial(_session, context, name), images, progress) for name in here)
    told = {measure.name for measure in quantized.measures}
    measures = (*quantized.measures, *(measure for measure in compiled.measures if measure.name not in told))
    return DemoOutcome(labels, baselines, trials, tuple(absent.items()), compiled.decisions, measures)


def model_folder(name: str) -> Path:
    """The folder of an embedded model: inside an installed package, or in the source tree."""
    package = Path(__file__).resolve().parent
    for folder in (package / "models" / name, package.parents[1] / "models" / name):
        if (folder / f"{name}.onnx").is_file():
            return folder
    raise ModelError(f"embedded model {name!r}", f"is not in {package}", "install hexqdq again")


def absent_executors() -> dict[str, str]:
    """The executors that this machine has nothing to run on, and why."""
    absent = {}
    if not host_targets():
        absent["host"] = f"no code is generated for {platform.machine()}"
    if shutil.which(QEMU) is None:
        absent["qemu"] = f"{QEMU} is not on PATH; install qemu-user"
    return absent


def _trial(name: str, load: Callable[[], Run], images: Array, progress: Progress | None) -> Trial:
    """Loads and runs every image, one at a time."""
    started = time.perf_counter()
    run = load()
    loaded = (time.perf_counter() - started) * 1e3
    outputs, times = [], []
    for index, image in enumerate(images):
        started = time.perf_counter()
        outputs.append(run({INPUT: image[None]}))
        times.append((time.perf_counter() - started) * 1e3)
        if progress is not None:
            progress(f"run {name}", index + 1, len(images))
    return Trial(name, np.concatenate(outputs), loaded, statistics.median(times))


def _onnxruntime(path: Path) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda feed: np.asarray(session.run(None, feed)[0])


def _session(context: Path, executor: str) -> Run:
    session = InferenceSession(str(context), provider_options=[{"executor": executor}])
    return lambda feed: np.asarray(session.run(None, feed)[0])
