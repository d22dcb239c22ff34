"""Latency and load time of contexts on the host beside onnxruntime's CPU provider, same QDQ model, one thread.

    python benchmarks/host_latency.py model.qdq.onnx [more ...] [--input-shape x:1x3x224x224] [--json]

Both sides run in this process, in turn, on the same random inputs. Medians are printed, and their
ratio: above 1 the context is faster. Every host object that this CPU can run is measured.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hexqdq
from hexqdq.report import Table, print_tables, to_json_text

Feeds = dict[str, NDArray[Any]]
TYPES = {"tensor(float)": np.float32, "tensor(uint8)": np.uint8, "tensor(int8)": np.int8}


@dataclass(frozen=True)
class Row:
    """One model: medians in milliseconds, and the share of the outputs' largest values at the same place."""

    model: str
    hexqdq_ms: float
    onnxruntime_ms: float
    speed_ratio: float
    hexqdq_load_ms: float
    onnxruntime_load_ms: float
    argmax_agreement: float


def milliseconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return 1000 * (time.perf_counter() - start)


def onnxruntime_session(path: Path) -> Any:
    """A session on the QDQ model with one thread and full optimisation."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def drawn_feeds(session: Any, seed: int) -> Feeds:
    """Random inputs over the whole integer type, or normal floats."""
    rng = np.random.default_rng(seed)
    feeds: Feeds = {}
    for node in session.get_inputs():
        dtype = np.dtype(TYPES[node.type])
        if dtype.kind == "f":
            feeds[node.name] = rng.standard_normal(node.shape).astype(dtype)
        else:
            low = -128 if dtype == np.int8 else 0
            feeds[node.name] = rng.integers(low, low + 256, node.shape).astype(dtype)
    return feeds


def agreement(ours: Sequence[NDArray[Any]], theirs: Sequence[NDArray[Any]]) -> float:
    """Share of outputs whose largest element is at the same place."""
    same = [int(np.argmax(a)) == int(np.argmax(b)) for a, b in zip(ours, theirs, strict=True)]
    return sum(same) / len(same)


def measured(path: Path, context: Path, runs: int) -> Row:
    """Both sides in turn, ``runs`` times after a warm-up."""
    loads = [milliseconds(lambda: hexqdq.InferenceSession(context)) for _ in range(5)]
    their_loads = [milliseconds(lambda: onnxruntime_session(path)) for _ in range(5)]
    ours, theirs = hexqdq.InferenceSession(context), onnxruntime_session(path)
    times: list[tuple[float, float]] = []
    agreed = []
    for index in range(runs + 2):
        feeds = drawn_feeds(ours, index)
        pair = (milliseconds(partial(ours.run, None, feeds)), milliseconds(partial(theirs.run, None, feeds)))
        agreed.append(agreement(ours.run(None, feeds), theirs.run(None, feeds)))
        if index >= 2:
            times.append(pair)
    mine, other = (statistics.median(column) for column in zip(*times, strict=True))
    return Row(
        path.name,
        round(mine, 3),
        round(other, 3),
        round(other / mine, 3),
        round(statistics.median(loads), 2),
        round(statistics.median(their_loads), 2),
        round(statistics.mean(agreed), 3),
    )


def shape_of(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, dims = text.rpartition(":")
    return name, tuple(int(size) for size in dims.split("x"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--input-shape", action="append", type=shape_of, default=[], metavar="NAME:1x3x224x224")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for index, path in enumerate(arguments.models):
            context = Path(folder) / f"{index}.ctx"
            hexqdq.compile_model(path, output=context, input_shapes=dict(arguments.input_shape) or None)
            rows.append(measured(path, context, arguments.runs))
    if arguments.json:
        print(to_json_text([asdict(row) for row in rows]))
        return 0
    columns = tuple(Row.__dataclass_fields__)
    print_tables([Table("Host latency, one thread", columns, tuple(tuple(asdict(row).values()) for row in rows))])
    return 0


if __name__ == "__main__":
    sys.exit(main())
