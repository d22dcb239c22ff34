"""Real models through the whole chain: quantized where float, compiled, run and scored on the host.

    python benchmarks/zoo.py [MODEL ...] [--shared DIR] [--work DIR] [--json] [--page docs/models.md]

One row per model: the score of the float model and of the QDQ model in onnxruntime, of the context
on the `host` executor, the NPU's share of the multiply-accumulates, segments, and the time that
compiling takes for Hexagon and the hosts together. Models, pictures and the scorer are those of a
development folder (`HEXQDQ_SHARED`), of which nothing is part of this repository. A model without
data is compared with its QDQ model in onnxruntime over drawn inputs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import hexqdq
from hexqdq.app.explain import explain
from hexqdq.report import Table, print_tables, reason_table, share, to_json_text

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = 64
PRESET = "a8w8"
"""The bits that are compiled whole; the default may give 16 to some activations, which stay on the CPU for now."""
AGREE = "agree"
CLASSIFIERS = ("imagenet", "cifar10", "mnist")


@dataclass(frozen=True)
class Model:
    """A model with its task; ``shapes`` make dynamic inputs static, ``size`` tells the scorer the same."""

    name: str
    task: str
    is_float: bool = False
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    size: str | None = None

    @property
    def commands(self) -> tuple[str, ...]:
        """What a user types."""
        shapes = "".join(f" --input-shape {name}:{'x'.join(map(str, dims))}" for name, dims in self.shapes)
        if not self.is_float:
            return (f"hexqdq compile {self.name}.onnx -o {self.name}.ctx{shapes}",)
        return (
            f"hexqdq quantize {self.name}.onnx --calib calib/ --preset {PRESET} -o {self.name}.qdq.onnx{shapes}",
            f"hexqdq compile {self.name}.qdq.onnx -o {self.name}.ctx",
        )


MODELS = (
    Model("mobilenet_v2_qat_qdq_u8", "imagenet"),
    Model("efficientnet_lite0", "imagenet", True),
    Model("yolox_nano_416", "coco", True),
    Model("deeplabv3_mnv2_qdq_u8", "voc-seg"),
    Model("mnist_cntk8", "mnist", True),
    Model("resnet8_cifar_fp32", "cifar10", True, (("input_1", (1, 32, 32, 3)),)),
    Model("resnet8_cifar_qdq_s8", "cifar10", False, (("input_1_int8", (1, 32, 32, 3)),)),
    Model("kws_dscnn_qdq_s8", AGREE, False, (("input_1", (1, 49, 10, 1)),)),
    Model("wakeword_1dconv_qdq_s8", AGREE, False, (("serving_default_input_1:0", (1, 30, 1, 40)),)),
    Model("ad01_autoencoder_qdq_s8", AGREE, False, (("input_1", (1, 640)),)),
    Model("ultraface_rfb320", "face", True),
    Model("yunet_n_320", "face", True),
    Model("selfie_segmentation", "selfie", True),
    Model("super_resolution_x3", "superres", True, (("input", (1, 1, 140, 140)),), "140x140"),
)


@dataclass(frozen=True)
class Row:
    """What was measured of one model; ``reasons`` say why nodes stay on the CPU."""

    model: str
    metric: str
    samples: int
    float_score: float | None
    qdq_score: float | None
    context_score: float
    same_argmax: float | None
    npu_mac_share: float
    segments: int
    cpu_nodes: int
    compile_s: float
    compile_cpu_s: float
    host_ms: float
    commands: tuple[str, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Place:
    """Where models and scorer come from, where the products go, and how many samples are scored at most."""

    shared: Path
    work: Path
    limit: int | None

    def evaluate(self, *arguments: str | Path, size: str | None = None) -> str:
        """The scorer's output."""
        command = [sys.executable, self.shared / "eval" / "evaluate.py", *arguments]
        command += ["--input-size", size] if size else []
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"zoo: {' '.join(map(str, command))}\n{done.stderr}")
        return done.stdout

    def scored(self, model: Model, path: Path, *arguments: str | Path) -> dict[str, Any]:
        """The scorer's record of one model file."""
        limit = ("--limit", str(self.limit)) if self.limit else ()
        text = self.evaluate(model.task, path, "--json", *limit, *arguments, size=model.size)
        record: dict[str, Any] = json.loads(text)
        return record

    def source(self, model: Model) -> Path:
        return self.shared / "models" / f"{model.name}.onnx"

    def calibration(self, model: Model) -> Path:
        """A folder of samples that are not scored."""
        folder = self.work / f"{model.name}.calib"
        if not folder.is_dir():
            count = ("--count", str(SAMPLES))
            self.evaluate(model.task, self.source(model), "--calib-out", folder, *count, size=model.size)
        return folder

    def quantized(self, model: Model) -> Path:
        """The QDQ model: as it came, or made with PRESET."""
        if not model.is_float:
            return self.source(model)
        output = self.work / f"{model.name}.qdq.onnx"
        recipe, shapes = hexqdq.Recipe.preset(PRESET), dict(model.shapes)
        hexqdq.quantize_model(self.source(model), self.calibration(model), recipe, output=output, input_shapes=shapes)
        return output

    def agreement(self, model: Model, context: Path, qdq: Path) -> float | None:
        """How often a classifier's largest output is where the QDQ model has it, over the scored samples."""
        pair = ("--runtime", "hexqdq", "--second", qdq)
        if model.task == AGREE:
            return float(self.scored(model, context, *pair)["extra"]["same_argmax"])
        if model.task not in CLASSIFIERS:
            return None
        tasks = ("--tasks-from", ROOT / "benchmarks" / "same_places.py")
        return float(self.scored(replace(model, task=f"same-{model.task}"), context, *pair, *tasks)["value"])


def measured(model: Model, place: Place) -> Row:
    """The model through every stage, then scored: float and QDQ in onnxruntime, the context on the host."""
    qdq, context = place.quantized(model), place.work / f"{model.name}.ctx"
    started, busy = time.perf_counter(), time.process_time()
    hexqdq.compile_model(qdq, output=context, input_shapes=dict(model.shapes))
    seconds, busy = time.perf_counter() - started, time.process_time() - busy
    explanation = explain(context)
    counted = share(explanation.decisions)
    ours, theirs = _scores(model, place, qdq, context)
    return Row(
        model=model.name,
        metric=ours["metric"],
        samples=ours["samples"],
        float_score=_rounded(place.scored(model, place.source(model))["value"]) if model.is_float else None,
        qdq_score=_rounded(theirs["value"]) if theirs else None,
        context_score=_rounded(ours["value"]),
        same_argmax=place.agreement(model, context, qdq),
        npu_mac_share=round(counted.npu_macs / counted.macs, 4),
        segments=len(explanation.segments),
        cpu_nodes=counted.nodes - counted.npu_nodes,
        compile_s=round(seconds, 1),
        compile_cpu_s=round(busy, 1),
        host_ms=round(ours["ms_per_run"], 2),
        commands=model.commands,
        reasons=tuple(f"{count} nodes: {why}" for why, count, _ in reason_table(explanation.decisions).rows),
    )


def _scores(model: Model, place: Place, qdq: Path, context: Path) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The context's record and the QDQ model's; without data, the context's signal-to-error ratio against that."""
    runtime = ("--runtime", "hexqdq")
    if model.task != AGREE:
        return place.scored(model, context, *runtime), place.scored(model, qdq)
    return place.scored(model, context, *runtime, "--second", qdq), None


def _rounded(value: float) -> float:
    return float(f"{value:.5g}")


def table(rows: Iterable[Row]) -> Table:
    """The rows for people."""
    scores = ("model", "metric", "samples", "float", "QDQ", "context", "same argmax")
    columns = (*scores, "NPU MACs", "segments", "compile s", "compile CPU s", "host ms")
    return Table(
        "Real models",
        columns,
        tuple(
            (
                row.model,
                row.metric,
                row.samples,
                row.float_score,
                row.qdq_score,
                row.context_score,
                row.same_argmax,
                f"{100 * row.npu_mac_share:.1f} %",
                row.segments,
                row.compile_s,
                row.compile_cpu_s,
                row.host_ms,
            )
            for row in rows
        ),
    )


def page(rows: Sequence[Row]) -> str:
    """docs/models.md."""
    shown = table(rows)
    lines = [
        "# Models",
        "",
        "Made by `python benchmarks/zoo.py --page docs/models.md`, which also scores. Models and data are not part of",
        "hexqdq. *float* and *QDQ* are scores in onnxruntime on the CPU, *context* is the compiled model on the `host`",
        f"executor, whose integers the NPU code equals. Float models are quantized by hexqdq with preset `{PRESET}` on",
        f"{SAMPLES} samples that are not scored; the others came with Q/DQ. *same argmax* is how often the largest",
        "output of the context is where the QDQ model has it in onnxruntime. Models without data are compared with",
        "onnxruntime over drawn inputs, also by their signal-to-error ratio. Compiling is for Hexagon and the hosts",
        "together, in seconds of the clock and of all cores: a busy machine lengthens one.",
        "",
        "| " + " | ".join(shown.columns) + " |",
        "|" + "---|" * len(shown.columns),
        *("| " + " | ".join("" if cell is None else str(cell) for cell in row) + " |" for row in shown.rows),
        "",
        "## What stays on the CPU",
        "",
        *[f"* `{row.model}`: {reason}" for row in rows for reason in row.reasons],
    ]
    if not any(row.reasons for row in rows):
        lines.append("Nothing in these models.")
    lines += ["", "## Commands", "", "```", *[command for row in rows for command in row.commands], "```", ""]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [model.name for model in MODELS]
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"all, or some of {', '.join(names)}")
    parser.add_argument("--shared", type=Path, default=Path(os.environ.get("HEXQDQ_SHARED") or ROOT.parent / "shared"))
    parser.add_argument("--work", type=Path, help="keep calibration samples, QDQ models and contexts here")
    parser.add_argument("--limit", type=int, help="score at most so many samples")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--page", type=Path, help="also write the page of the documentation")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.models) - set(names))
    if unknown:
        parser.error(f"unknown model {unknown[0]}; expected one of {', '.join(names)}")
    chosen = [model for model in MODELS if model.name in (arguments.models or names)]
    with tempfile.TemporaryDirectory() as folder:
        place = Place(arguments.shared, arguments.work or Path(folder), arguments.limit)
        place.work.mkdir(parents=True, exist_ok=True)
        rows = []
        for model in chosen:
            print(model.name, file=sys.stderr, flush=True)
            rows.append(measured(model, place))
    if arguments.page:
        arguments.page.write_text(page(rows), encoding="utf-8")
    if arguments.json:
        print(to_json_text([asdict(row) for row in rows]))
    else:
        print_tables([table(rows)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
