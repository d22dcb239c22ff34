"""Wall time and peak memory of calibrating a model and writing it as QDQ, beside onnxruntime.quantization.

    python benchmarks/quantize_cost.py [model.onnx:DIR[:NAME=1x3x32x32,...] ...] [--samples 64 512]
        [--methods minmax ...] [--runs 3] [--threads N] [--json]

Both sides do one job, calibrate, insert and write, on the same samples, in turn, each run in a process of
its own. Imports of packages are not counted; passes that repair are off. DIR holds one .npz a sample.
Without models a convolutional network of many tensors is made and its samples are drawn. Times are the
least of --runs, peaks are of the whole process. onnxruntime runs with the first number of --samples only:
its memory grows with their number; it has no mse and averages otherwise. Ratios above 1 mean that
onnxruntime takes more.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq.report import Table, print_tables, to_json_text

Feeds = dict[str, NDArray[Any]]
OURS, THEIRS = "hexqdq", "onnxruntime"
METHODS = {"minmax": "MinMax", "percentile": "Percentile", "entropy": "Entropy", "mse": None, "average": None}
"""Methods, and what onnxruntime calls them."""
WIDTH, BLOCKS, SIDE = 32, 40, 64
"""Channels, residual blocks, and height and width of the network that is made."""


@dataclass(frozen=True)
class Job:
    """One run of one side."""

    side: str
    model: str
    folder: str
    shapes: dict[str, list[int]]
    samples: int
    method: str
    threads: int


@dataclass(frozen=True)
class Cost:
    """What runs took at least; processor seconds are of all threads."""

    wall_s: float
    processor_s: float
    peak_mb: float


@dataclass(frozen=True)
class Row:
    """One model, method and number of samples; ``flatness`` is the peak over that of the fewest samples."""

    model: str
    method: str
    samples: int
    hexqdq_s: float
    onnxruntime_s: float | None
    time_ratio: float | None
    hexqdq_processor_s: float
    onnxruntime_processor_s: float | None
    hexqdq_mb: float
    onnxruntime_mb: float | None
    memory_ratio: float | None
    flatness: float


class Samples:
    """The samples of a folder, read one at a time, and again from the first where there are too few."""

    def __init__(self, folder: str, count: int) -> None:
        self._files, self._count = sorted(Path(folder).glob("*.npz")), count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Feeds]:
        for index in range(self._count):
            with np.load(self._files[index % len(self._files)]) as arrays:
                yield dict(arrays)


def by_hexqdq(job: Job, output: Path) -> Callable[[], None]:
    import onnxruntime  # noqa: F401 - loaded before the clock starts
    import onnxscript.rewriter  # noqa: F401

    from hexqdq.import_.pipeline import import_model
    from hexqdq.quantize.pipeline import quantize
    from hexqdq.quantize.recipe import Recipe
    from hexqdq.quantize.writing.save import save

    repairs = {field.name: False for field in fields(Recipe) if field.default is True and field.name != "per_channel"}
    recipe = Recipe(method=job.method, **repairs)  # type: ignore[arg-type]

    def run() -> None:
        imported = import_model(job.model, {name: tuple(shape) for name, shape in job.shapes.items()})
        save(quantize(imported, Samples(job.folder, job.samples), recipe), output)

    return run


def by_onnxruntime(job: Job, output: Path) -> Callable[[], None]:
    from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantType, quantize_static

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self._samples = iter(Samples(job.folder, job.samples))

        def get_next(self) -> Feeds | None:
            return next(self._samples, None)

    method = METHODS[job.method]
    assert method is not None

    def run() -> None:
        quantize_static(
            job.model,
            str(output),
            Reader(),
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            calibrate_method=CalibrationMethod[method],
        )

    return run


def perform(job: Job) -> Cost:
    """Runs the job in this process."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: job.threads])
    with tempfile.TemporaryDirectory() as folder:
        run = (by_hexqdq if job.side == OURS else by_onnxruntime)(job, Path(folder) / "out.onnx")
        gc.collect()
        gc.freeze()  # what imports left is not walked again while the clock runs
        wall, processor = time.perf_counter(), time.process_time()
        run()
        return Cost(time.perf_counter() - wall, time.process_time() - processor, _peak_mb())


def _peak_mb() -> float:
    """The most memory this process ever held; what it was forked from does not count."""
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def in_process(job: Job) -> Cost:
    """Runs the job in a process of its own."""
    command = [sys.executable, "-W", "ignore", __file__, "--job", json.dumps(asdict(job))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{job}\n{done.stderr}")
    return Cost(**json.loads(done.stdout.splitlines()[-1]))


def least(costs: list[Cost]) -> Cost:
    """The least times, and the largest peak."""
    return Cost(
        min(cost.wall_s for cost in costs),
        min(cost.processor_s for cost in costs),
        max(cost.peak_mb for cost in costs),
    )


def measured(model: str, folder: str, shapes: dict[str, list[int]], method: str, options: Any) -> Iterator[Row]:
    """Rows of one model and method, fewest samples first."""
    fewest: float | None = None
    for count in options.samples:
        with_theirs = METHODS[method] is not None and count == options.samples[0]
        costs: dict[str, list[Cost]] = {OURS: [], THEIRS: []}
        for _ in range(options.runs):
            for side in (OURS, THEIRS) if with_theirs else (OURS,):
                costs[side].append(in_process(Job(side, model, folder, shapes, count, method, options.threads)))
        ours = least(costs[OURS])
        fewest = fewest or ours.peak_mb
        yield _row(Path(model).name, method, count, ours, least(costs[THEIRS]) if with_theirs else None, fewest)


def _row(model: str, method: str, count: int, ours: Cost, theirs: Cost | None, fewest: float) -> Row:
    return Row(
        model,
        method,
        count,
        round(ours.wall_s, 3),
        None if theirs is None else round(theirs.wall_s, 3),
        None if theirs is None else round(theirs.wall_s / ours.wall_s, 2),
        round(ours.processor_s, 3),
        None if theirs is None else round(theirs.processor_s, 3),
        round(ours.peak_mb, 1),
        None if theirs is None else round(theirs.peak_mb, 1),
        None if theirs is None else round(theirs.peak_mb / ours.peak_mb, 2),
        round(ours.peak_mb / fewest, 3),
    )


def make_network(path: Path) -> None:
    """A network of residual blocks: depthwise and pointwise convolutions, rectified, added."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    nodes, constants = [], []

    def conv(data: str, name: str, shape: tuple[int, ...], groups: int = 1, pad: int = 0) -> str:
        scale = np.sqrt(2 / np.prod(shape[1:]))
        constants.append(numpy_helper.from_array((scale * rng.normal(size=shape)).astype(np.float32), f"{name}_w"))
        constants.append(numpy_helper.from_array((0.1 * rng.normal(size=shape[0])).astype(np.float32), f"{name}_b"))
        inputs = [data, f"{name}_w", f"{name}_b"]
        nodes.append(helper.make_node("Conv", inputs, [name], group=groups, pads=[pad] * 4))
        return name

    def relu(data: str) -> str:
        nodes.append(helper.make_node("Relu", [data], [f"{data}_relu"]))
        return f"{data}_relu"

    data = relu(conv("x", "stem", (WIDTH, 3, 3, 3), pad=1))
    for index in range(BLOCKS):
        inner = relu(conv(data, f"deep{index}", (WIDTH, 1, 3, 3), groups=WIDTH, pad=1))
        inner = conv(inner, f"point{index}", (WIDTH, WIDTH, 1, 1))
        half = numpy_helper.from_array(np.array(0.5, np.float32), f"half{index}")
        constants.append(half)
        nodes.append(helper.make_node("Add", [data, inner], [f"sum{index}"]))
        nodes.append(helper.make_node("Mul", [f"sum{index}", half.name], [f"mean{index}"]))
        data = f"mean{index}"
    nodes.append(helper.make_node("GlobalAveragePool", [data], ["y"]))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, SIDE, SIDE])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, WIDTH, 1, 1])
    graph = helper.make_graph(nodes, "blocks", [x], [y], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def made_up(folder: Path, count: int) -> tuple[str, str, dict[str, list[int]]]:
    """The made network and its drawn samples."""
    make_network(folder / "blocks.onnx")
    for index in range(count):
        drawn = np.random.default_rng(index).normal(size=(1, 3, SIDE, SIDE)).astype(np.float32)
        np.savez(folder / f"{index:04d}.npz", x=drawn)
    return str(folder / "blocks.onnx"), str(folder), {}


def given(text: str) -> tuple[str, str, dict[str, list[int]]]:
    """``model:folder:name=1x3x32x32,...`` taken apart."""
    model, folder, *rest = text.split(":", 2)
    pairs = (part.rpartition("=") for part in rest[0].split(",")) if rest else ()
    return model, folder, {name: [int(size) for size in shape.split("x")] for name, _, shape in pairs}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=given)
    parser.add_argument("--samples", nargs="+", type=int, default=[64, 512])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        print(json.dumps(asdict(perform(Job(**json.loads(options.job))))))
        return 0
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        models = options.models or [made_up(Path(folder), max(options.samples))]
        for model, samples, shapes in models:
            for method in options.methods:
                rows += measured(model, samples, shapes, method, options)
    if options.json:
        print(to_json_text([asdict(row) for row in rows]))
        return 0
    columns = tuple(Row.__dataclass_fields__)
    cells = tuple(tuple(asdict(row).values()) for row in rows)
    print_tables([Table("Quantizing beside onnxruntime.quantization", columns, cells)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
