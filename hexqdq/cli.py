"""The command line: commands, messages and exit codes (0 done, 1 input at fault, 2 usage, 3 our fault)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from hexqdq.errors import HexqdqError, UsageError
from hexqdq.report import Progress, Table, measure_table, print_tables, reason_table, share
from hexqdq.report import to_json_text as json_text
from hexqdq.target import DEFAULT_TARGET

if TYPE_CHECKING:
    from rich.progress import TaskID

OUR_FAULT = 3
INTERRUPTED = 130
"""What a shell expects of a program that Ctrl-C ended."""
COMPILE_PACKAGES = ("onnx", "onnx_ir", "onnxscript", "onnxruntime", "mlir", "llvmlite", "ziglang")
"""What the extra ``compile`` brings, by import name."""

app = typer.Typer(
    name="hexqdq",
    help="Quantize ONNX models, compile them for the Hexagon NPU, run them bit for bit the same on the host.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="An ONNX file.")]
OutputPath = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to write; beside MODEL if not given.")
]
InputShapes = Annotated[
    list[str] | None,
    typer.Option("--input-shape", metavar="NAME:1x3x32x32", help="The static shape of a dynamic input; may repeat."),
]
CalibrationData = Annotated[
    str | None,
    typer.Option(
        "--calib",
        metavar="DATA",
        help="A folder of .npz, .npy, pictures or test_data_set_*; a stacked .npz or .npy; or module:function.",
    ),
]
ImageSize = Annotated[
    str | None, typer.Option(metavar="256 or 256x320", help="Pictures: shorter side, or HxW, before the crop.")
]
ExternalData = Annotated[
    bool, typer.Option("--external-data", help="Write weights beside the model, as over 2 GB they are anyway.")
]
TargetName = Annotated[str, typer.Option("--target", help="See `hexqdq targets`.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
DumpFolder = Annotated[Path | None, typer.Option("--dump", metavar="DIR", help="Write every stage's product to it.")]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs a command and exits with its code; no error leaves as a traceback unless HEXQDQ_DEBUG=1."""
    code = None
    try:
        words = list(arguments) if arguments is not None else None
        code = app(args=words, prog_name="hexqdq", standalone_mode=False)
    except HexqdqError as error:
        _fail(str(error), error.exit_code)
    except BrokenPipeError:
        os._exit(1)
    except typer.Abort:
        code = INTERRUPTED
    except Exception as error:
        package = _missing_package(error)
        if package is not None:
            _fail(f"{package}: is not installed\n  next: pip install 'hexqdq[compile]'", UsageError.exit_code)
        wrong_words = _wrong_words(error)
        if wrong_words is not None:
            _fail(wrong_words, UsageError.exit_code)
        next_step = "this is a fault of hexqdq; repeat with HEXQDQ_DEBUG=1 and report what it prints"
        _fail(f"{type(error).__name__}: {error}\n  next: {next_step}", OUR_FAULT)
    raise SystemExit(code or 0)


@app.command()
def quantize(
    context: typer.Context,
    model: ModelPath,
    calib: CalibrationData = None,
    output: OutputPath = None,
    input_shape: InputShapes = None,
    image_size: ImageSize = None,
    mean: Annotated[str | None, typer.Option(metavar="M or R,G,B", help="Pictures: taken off; 0 by default.")] = None,
    std: Annotated[str | None, typer.Option(metavar="S or R,G,B", help="Pictures: divided by; 1 by default.")] = None,
    white: Annotated[float | None, typer.Option(help="Pictures: value of white before --mean; 1 by default.")] = None,
    layout: Annotated[str | None, typer.Option(help="Pictures: nchw or nhwc, if the shape leaves it open.")] = None,
    channels: Annotated[str | None, typer.Option(help="Pictures: rgb (default) or bgr.")] = None,
    preset: Annotated[str | None, typer.Option(help="Bits of values, weights: auto, a8w8, a16w8, a8w4, a16w4.")] = None,
    recipe: Annotated[Path | None, typer.Option("--recipe", metavar="FILE", help="A recipe as JSON.")] = None,
    activations: Annotated[str | None, typer.Option(help="Values between nodes as u8, s8, u16 or s16.")] = None,
    weights: Annotated[str | None, typer.Option(help="Weights as s8, u8, s4 or s16.")] = None,
    weight_block: Annotated[int | None, typer.Option(help="4-bit weights that share a scale; 0 for channels.")] = None,
    method: Annotated[str | None, typer.Option(help="Ranges by mse, minmax, average, percentile or entropy.")] = None,
    percentile: Annotated[float | None, typer.Option(help="Percent of values that percentile keeps.")] = None,
    mse_power: Annotated[float | None, typer.Option(help="Power of the error that mse sums.")] = None,
    histogram_bins: Annotated[int | None, typer.Option(help="Bins of a tensor's histogram.")] = None,
    equalize: Annotated[bool | None, typer.Option(help="Give weights on both sides of a tensor equal ranges.")] = None,
    smooth: Annotated[bool | None, typer.Option(help="Move scales of activations into weights.")] = None,
    awq: Annotated[bool | None, typer.Option(help="Scale 4-bit weights by the activations they meet.")] = None,
    gptq: Annotated[bool | None, typer.Option(help="Round weights so that errors make up for each other.")] = None,
    adaround: Annotated[bool | None, typer.Option(help="Round weights up or down by descent.")] = None,
    rounding_damping: Annotated[float | None, typer.Option(help="Of both: share added to second moments.")] = None,
    bias_correct: Annotated[bool | None, typer.Option(help="Take the mean error out of biases.")] = None,
    mixed: Annotated[bool | None, typer.Option(help="16-bit activations where 8 bits hurt the outputs.")] = None,
    budget: Annotated[float | None, typer.Option(metavar="PERCENT", help="MACs at 16 bits, at most.")] = None,
    target_drop: Annotated[float | None, typer.Option(metavar="DB", help="Of the outputs, against 16 bits.")] = None,
    ranges: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Of values: read if it exists, else written.")
    ] = None,
    external_data: ExternalData = False,
    dump: DumpFolder = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Calibrate a float model and write it with Q/DQ nodes."""
    from hexqdq.app import convert
    from hexqdq.app.calibration.pictures import options_from_text

    path = output or model.parent / f"{model.stem}.qdq.onnx"
    pictures = options_from_text(image_size, mean, std, white, layout, channels)
    chosen = convert.chosen_recipe(recipe, preset, context.params)
    with _progress(quiet or as_json) as progress:
        result = convert.quantize_to_file(
            *(model, calib, path),
            recipe=chosen,
            ranges=ranges,
            input_shapes=_shapes(input_shape),
            pictures=pictures,
            external_data=external_data,
            dump=dump,
            progress=progress,
        )
    _show(result.to_json(), result.tables(), f"wrote {path}", as_json, quiet)


@app.command()
def compile(
    model: ModelPath,
    output: OutputPath = None,
    target: TargetName = DEFAULT_TARGET,
    input_shape: InputShapes = None,
    allow_cpu: Annotated[bool, typer.Option("--allow-cpu", help="Accept a model that stays on the CPU.")] = False,
    dump: DumpFolder = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compile a QDQ model, or a TOSA function (.mlir), into a context file."""
    from hexqdq.app import convert

    stem = model.name.removesuffix(".onnx").removesuffix(".mlir").removesuffix(".qdq")
    path = output or model.parent / f"{stem}.ctx"
    with _progress(quiet or as_json) as progress:
        result = convert.compile_to_file(
            model,
            path,
            target=target,
            input_shapes=_shapes(input_shape),
            allow_cpu=allow_cpu,
            dump=dump,
            progress=progress,
        )
    tables = [measure_table(result.measures, str(share(result.decisions))), *_reasons(result.decisions)]
    data = {"output": str(path), "decisions": result.decisions, "measures": result.measures}
    _show(data, tables, f"wrote {path}", as_json, quiet)


@app.command()
def run(
    context: Annotated[Path, typer.Argument(metavar="CONTEXT", help="A context file, or a QDQ model.")],
    inputs: Annotated[
        list[str] | None, typer.Option("--input", metavar="NAME=FILE.npy", help="Repeat for each.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.npz", help="Write outputs by name.")
    ] = None,
    executor: Annotated[str, typer.Option("--executor", help="auto, host, qemu or reference.")] = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Run a context once; print what its outputs are like, or write them."""
    from hexqdq.app import once

    with _progress(quiet or as_json) as progress:
        outcome = once.run_once(context, _files(inputs or []), executor, output, progress)
    done = f"wrote {output}" if output else "give -o FILE.npz to keep the outputs"
    _show(outcome.to_json(), outcome.tables(), done, as_json, quiet)


@app.command()
def explain(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="An ONNX file or a context.")],
    target: Annotated[str, typer.Option("--target", help="For a model; a context keeps its own.")] = DEFAULT_TARGET,
    input_shape: InputShapes = None,
    rules: Annotated[
        str | None, typer.Option("--rules", metavar="qnn", help="List what breaks the rules of another back end.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say where each node runs, and why some stay on the CPU."""
    if rules is not None:
        from hexqdq.app.rules.judge import judge

        verdict = judge(model, rules, _shapes(input_shape))
        _show(verdict.to_json(), verdict.tables(), verdict.to_text(), as_json, quiet=False)
        return
    from hexqdq.app.explain import explain as explain_model

    explanation = explain_model(model, target=target, input_shapes=_shapes(input_shape))
    _show(explanation.to_json(), explanation.tables(), explanation.to_text(), as_json, quiet=False)


@app.command()
def inspect(
    context: Annotated[Path, typer.Argument(metavar="CONTEXT", help="A context file.")],
    as_json: AsJson = False,
) -> None:
    """Show a context: edges, parts, steps, memory plan, sections."""
    from hexqdq.app.inspect import inspect as inspect_context

    inspection = inspect_context(context)
    _show(inspection.to_json(), inspection.tables(), inspection.to_text(), as_json, quiet=False)


@app.command()
def compare(
    exact: Annotated[Path, typer.Argument(metavar="FLOAT", help="The float ONNX file.")],
    quantized: Annotated[Path, typer.Argument(metavar="QDQ", help="The QDQ model that was made from it.")],
    data: Annotated[str, typer.Option("--data", metavar="DATA", help="As --calib of quantize.")],
    input_shape: InputShapes = None,
    good: Annotated[float, typer.Option(help="SQNR in dB below which a tensor is bad.")] = 20.0,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page with plots, too.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare a float model with its QDQ form, tensor by tensor; the first bad one is at the top."""
    from hexqdq.app.compare import comparison, page

    if html is not None:
        page.require_packages()
    with _progress(quiet or as_json) as progress:
        shapes, pictured = _shapes(input_shape), html is not None
        found = comparison.compare(
            exact, quantized, data, input_shapes=shapes, good=good, with_histograms=pictured, progress=progress
        )
    if html is not None:
        page.write_page(found, exact, quantized, html)
    done = f"{found.to_text()}\nwrote {html}" if html is not None else found.to_text()
    _show(found.to_json(), found.tables(), done, as_json, quiet)


@app.command()
def demo(as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Quantize, compile and run the digits model on every executor."""
    from hexqdq.app.demo import run_demo

    with _progress(quiet or as_json) as progress:
        outcome = run_demo(progress)
    _show(outcome.to_json(), outcome.tables(), outcome.verdict, as_json, quiet)
    if not outcome.equal:
        raise typer.Exit(OUR_FAULT)


@app.command()
def targets(as_json: AsJson = False) -> None:
    """List the targets."""
    from hexqdq.target import TARGETS

    rows = tuple(
        (
            t.name,
            t.arch,
            ", ".join(sorted(t.features)),
            f"{t.vtcm_bytes // 2**20} MB" if t.vtcm_bytes else None,
            t.source,
        )
        for t in TARGETS
    )
    table = Table("Targets", ("target", "architecture", "features", "VTCM", "source"), rows)
    _show(table.to_json(), [table], "", as_json, quiet=False)


@app.command()
def ops(
    names: Annotated[list[str] | None, typer.Argument(metavar="[OP]...", help="Only these, with every limit.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the ops that the NPU has a form for; name some for their limits."""
    from hexqdq.app.op_list import op_list

    listed = op_list(names or [])
    _show(listed.to_json(), listed.tables(), listed.to_text(), as_json, quiet=False)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"hexqdq {version('hexqdq')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Quantize ONNX models, compile them for the Hexagon NPU, run them bit for bit the same on the host."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(UsageError.exit_code)


def _show(data: Any, tables: Iterable[Table], done: str, as_json: bool, quiet: bool) -> None:
    if as_json:
        typer.echo(json_text(data))
    elif not quiet:
        print_tables(tables)
        if done:
            typer.echo(done)


def _reasons(decisions: Iterable[Any]) -> list[Table]:
    table = reason_table(decisions)
    return [table] if table.rows else []


def _fail(message: str, code: int) -> NoReturn:
    if os.environ.get("HEXQDQ_DEBUG") == "1":
        import traceback

        traceback.print_exc()
    typer.echo(f"error: {message}", err=True)
    raise SystemExit(code)


def _missing_package(error: Exception) -> str | None:
    """The package of the extra ``compile`` that an import did not find."""
    name = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    return name if name in COMPILE_PACKAGES else None


def _wrong_words(error: Exception) -> str | None:
    """The message for what typer raises about the words of a command line, whichever of its versions does."""
    message = getattr(error, "format_message", None)
    if message is None:
        return None
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "hexqdq"
    return f"{command}: {message()}\n  next: {command} --help lists what it takes"


def _pair(text: str, separator: str, form: str) -> tuple[str, str]:
    left, found, right = text.rpartition(separator) if separator == ":" else text.partition(separator)
    if not (left and found and right):
        raise UsageError(f"option value {text!r}", f"expected {form}", "see --help of the command")
    return left, right


def _files(texts: list[str]) -> dict[str, str]:
    """``name=file`` texts as files by name."""
    pairs = [_pair(text, "=", "--input NAME=FILE.npy") for text in texts]
    files = dict(pairs)
    if len(files) < len(pairs):
        given = ", ".join(name for name, _ in pairs)
        raise UsageError("--input", f"names an input twice: {given}; expected each once", "give one file per input")
    return files


def _shapes(texts: list[str] | None) -> dict[str, tuple[int, ...]]:
    """``name:1x3x32x32`` texts as shapes by name; the name may itself hold colons."""
    shapes = {}
    for text in texts or []:
        name, shape = _pair(text, ":", "--input-shape NAME:1x3x32x32")
        sizes = shape.lower().split("x")
        if not all(size.isdecimal() and int(size) > 0 for size in sizes):
            raise UsageError(f"--input-shape {text}", f"{shape!r} is no shape", "write it as NAME:1x3x32x32")
        shapes[name] = tuple(map(int, sizes))
    return shapes


@contextmanager
def _progress(silent: bool) -> Iterator[Progress | None]:
    """Bars on a terminal, one line per finished task in a pipe, both on stderr."""
    if silent:
        yield None
    elif sys.stderr.isatty():
        with _Bars() as bars:
            yield bars
    else:
        yield _line


def _line(what: str, done: int, total: int) -> None:
    if done == total:
        typer.echo(f"{what}: {done}" if total > 1 else what, err=True)


class _Bars:
    """One bar per task, opened when the task is first told of."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import Progress as RichProgress

        self._bars = RichProgress(console=Console(stderr=True), transient=True)
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> _Bars:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def __call__(self, what: str, done: int, total: int) -> None:
        if what not in self._tasks:
            self._tasks[what] = self._bars.add_task(what, total=total or None)
        self._bars.update(self._tasks[what], completed=done, total=total or None)
