"""InferenceSession: onnxruntime's manners on a context."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray

from hexqdq import numerics
from hexqdq.app.session import InferenceSession
from hexqdq.context import file
from hexqdq.errors import ContextError, ExecutorError, InputError, UnsupportedError, UsageError
from hexqdq.ops import reference
from hexqdq.target import host_targets
from tests.context.objects import build_object
from tests.context.samples import INPUT, OUTPUT, abs_part, conv_graph, conv_model, conv_segment, sample_input

REFERENCE = [{"executor": "reference"}]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return file.write(conv_model(host_parts=(abs_part(),)), tmp_path / "model.ctx")


@pytest.fixture
def session(path: Path) -> InferenceSession:
    return InferenceSession(path, provider_options=REFERENCE)


def expected(x: NDArray[np.float32]) -> NDArray[np.float32]:
    assert INPUT.params and OUTPUT.params
    integers = reference.run(conv_graph(), {"x_q": numerics.quantize(x, INPUT.params)})["y_q"]
    return numerics.dequantize(integers, OUTPUT.params)


def test_it_says_what_onnxruntime_says_of_the_same_io(session: InferenceSession) -> None:
    theirs = onnxruntime.InferenceSession(abs_part().model, providers=["CPUExecutionProvider"])
    (ours,), (other,) = session.get_outputs()[1:], theirs.get_outputs()
    assert (ours.name, ours.shape, ours.type) == (other.name, other.shape, other.type)
    (x,) = session.get_inputs()
    assert (x.name, x.shape, x.type) == ("x", [1, 3, 4, 4], "tensor(float)")
    assert session.get_providers() == ["HexqdqExecutionProvider", "CPUExecutionProvider"]
    assert session.get_provider_options()["HexqdqExecutionProvider"]["executor"] == "reference"


def test_metadata_names_target_and_digest(session: InferenceSession) -> None:
    meta = session.get_modelmeta()
    assert (meta.producer_name, meta.graph_name) == ("hexqdq", "model")
    assert meta.custom_metadata_map["target"] == "hexagon-v73"
    assert meta.custom_metadata_map["digest"] == "5f" * 32


def test_outputs_come_in_the_order_asked_for(session: InferenceSession) -> None:
    x = sample_input()
    y = expected(x)
    for names, wanted in ((None, [y, abs(y)]), ([], [y, abs(y)]), (["z", "y"], [abs(y), y]), (["z"], [abs(y)])):
        results = session.run(names, {"x": x})
        assert len(results) == len(wanted)
        for result, want in zip(results, wanted, strict=True):
            np.testing.assert_array_equal(result, want, strict=True)


def test_bytes_and_text_paths_are_taken(path: Path) -> None:
    sources: tuple[str | bytes, ...] = (str(path), path.read_bytes())
    for source in sources:
        (y, _) = InferenceSession(source, provider_options=REFERENCE).run(None, {"x": sample_input()})
        np.testing.assert_array_equal(y, expected(sample_input()), strict=True)


def test_an_ort_value_is_a_feed(session: InferenceSession) -> None:
    value = onnxruntime.OrtValue.ortvalue_from_numpy(sample_input())
    np.testing.assert_array_equal(session.run(["y"], {"x": value})[0], expected(sample_input()), strict=True)


def test_run_is_thread_safe(session: InferenceSession) -> None:
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda seed: session.run(["y"], {"x": sample_input(seed)})[0], range(40)))
    for seed, result in enumerate(results):
        np.testing.assert_array_equal(result, expected(sample_input(seed)), strict=True)


@pytest.mark.parametrize(
    ("names", "feed", "words"),
    [
        (None, {}, "input 'x': is missing"),
        (None, {"x": sample_input(), "w": sample_input()}, "input 'w': is not one of the model's: x"),
        (None, {"x": sample_input()[0]}, r"got float32 \(3, 4, 4\); expected float32 \(1, 3, 4, 4\)"),
        (None, {"x": sample_input().astype(np.float64)}, "got float64"),
        (None, {"x": sample_input().astype(">f4")}, "got >f4"),
        (None, {"x": "text"}, "got <U4"),
        (["q"], {"x": sample_input()}, "output 'q': is not one of the model's: y, z"),
    ],
)
def test_a_feed_that_does_not_fit_is_told(
    session: InferenceSession, names: list[str] | None, feed: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        session.run(names, feed)


@pytest.mark.parametrize(
    ("providers", "options", "words"),
    [
        (None, [{"device": "npu"}], "unknown; expected one of executor, target, cache_dir, threads, disable_cpu"),
        (None, [{"executor": "npu"}], "got 'npu'; expected one of auto, reference, host, qemu"),
        (None, [{"threads": "0"}], "got '0'; expected a whole number above 0"),
        (None, [{"threads": True}], "got True; expected a whole number above 0"),
        (None, [{"disable_cpu_fallback": "maybe"}], "expected one of 1, true, 0, false"),
        (None, [{"cache_dir": 3}], "expected the path of a folder"),
        (None, [{"target": "v12"}], "unknown; expected one of hexagon-v68"),
        (None, [{}, {}], "2 dicts for 1 providers"),
        (None, {"executor": "host"}, "expected a list of one dict"),
        (["QNNExecutionProvider"], None, "expected one of HexqdqExecutionProvider, CPUExecutionProvider"),
        ([("CPUExecutionProvider", {"threads": 1})], None, "takes no options; got threads"),
    ],
)
def test_unknown_options_list_the_valid_ones(path: Path, providers: Any, options: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        InferenceSession(path, providers=providers, provider_options=options)


@pytest.mark.parametrize(
    ("providers", "options"),
    [
        (["HexqdqExecutionProvider", "CPUExecutionProvider"], [{"executor": "reference"}, {}]),
        ([("HexqdqExecutionProvider", {"executor": "reference"}), "CPUExecutionProvider"], None),
        (["HexqdqExecutionProvider"], [{"executor": "reference", "threads": "2", "disable_cpu_fallback": "0"}]),
        (None, [{"executor": "reference", "target": "v73", "threads": 1}]),
    ],
)
def test_options_are_taken_in_onnxruntimes_forms(path: Path, providers: Any, options: Any) -> None:
    session = InferenceSession(path, providers=providers, provider_options=options)
    assert session.get_provider_options()["HexqdqExecutionProvider"]["executor"] == "reference"
    np.testing.assert_array_equal(session.run(["y"], {"x": sample_input()})[0], expected(sample_input()), strict=True)


def test_session_options_go_to_the_cpu_parts(path: Path) -> None:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    assert InferenceSession(path, options, provider_options=REFERENCE).run(["z"], {"x": sample_input()})
    with pytest.raises(UsageError, match="together with sess_options"):
        InferenceSession(path, options, provider_options=[{"threads": 2}])


def test_auto_says_why_the_host_cannot(path: Path) -> None:
    with pytest.raises(ExecutorError, match=r"has objects for hexagon; this .* runs"):
        InferenceSession(path)


def test_another_target_or_a_forbidden_cpu_part_is_told(path: Path) -> None:
    with pytest.raises(ContextError, match="is compiled for hexagon-v73; expected hexagon-v75"):
        InferenceSession(path, provider_options=[{"executor": "reference", "target": "v75"}])
    with pytest.raises(UnsupportedError, match=r"run on the CPU \(abs\)"):
        InferenceSession(path, provider_options=[{"executor": "reference", "disable_cpu_fallback": "1"}])


@pytest.mark.parametrize("data", [b"", b"garbage", b"\x89HXQCTX\n", b"\x00" * 9000, b"PK\x03\x04" * 100])
def test_bytes_that_are_no_context_are_told(data: bytes) -> None:
    with pytest.raises(ContextError):
        InferenceSession(data)


def test_io_binding_binds_reads_and_copies(session: InferenceSession) -> None:
    binding = session.io_binding()
    place = np.zeros(OUTPUT.shape, np.float32)
    binding.bind_cpu_input("x", sample_input())
    binding.bind_output("z")
    binding.bind_output("y", "cpu", 0, np.float32, OUTPUT.shape, place.ctypes.data)
    session.run_with_iobinding(binding)
    z, y = binding.copy_outputs_to_cpu()
    np.testing.assert_array_equal(y, expected(sample_input()), strict=True)
    np.testing.assert_array_equal(place, y, strict=True)
    np.testing.assert_array_equal(z, abs(y), strict=True)
    binding.clear_binding_inputs()
    with pytest.raises(InputError, match="'x': is missing"):
        session.run_with_iobinding(binding)


def test_io_binding_refuses_what_does_not_fit(session: InferenceSession) -> None:
    binding = session.io_binding()
    with pytest.raises(InputError, match="input 'q'"):
        binding.bind_cpu_input("q", sample_input())
    with pytest.raises(InputError, match="output 'q'"):
        binding.bind_output("q")
    with pytest.raises(InputError, match=r"bound with shape \(1,\)"):
        binding.bind_output("y", shape=(1,))
    with pytest.raises(InputError, match="bound with type float16"):
        binding.bind_output("y", element_type=np.float16)
    with pytest.raises(UsageError, match="device cuda:0"):
        binding.bind_output("y", "cuda")


WITHOUT_TOOLS = """
    import sys
    BLOCKED = ("mlir", "llvmlite", "ziglang", "onnx", "onnx_ir", "onnxscript", "onnxruntime")
    for name in BLOCKED:
        sys.modules[name] = None
    import numpy as np
    from hexqdq import InferenceSession
    session = InferenceSession(sys.argv[1], provider_options=[{"executor": sys.argv[4]}])
    np.save(sys.argv[3], session.run(None, {"x": np.load(sys.argv[2])})[0])
    heavy = [name for name in sys.modules if name.partition(".")[0] in (*BLOCKED, "typer", "rich")]
    assert all(sys.modules[name] is None for name in heavy), heavy
"""


@pytest.mark.parametrize("executor", ["reference", "host"])
def test_it_loads_and_runs_without_the_tool_chain(executor: str, tmp_path: Path) -> None:
    objects = {host_targets()[0].object_key: build_object()} if executor == "host" else None
    context = file.write(conv_model(conv_segment(objects)), tmp_path / "model.ctx")
    np.save(tmp_path / "x.npy", sample_input())
    arguments = [str(context), str(tmp_path / "x.npy"), str(tmp_path / "y.npy"), executor]
    command = [sys.executable, "-c", textwrap.dedent(WITHOUT_TOOLS), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    here = InferenceSession(context, provider_options=[{"executor": executor}]).run(None, {"x": sample_input()})
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), here[0], strict=True)


def test_a_feed_that_is_no_dictionary_is_told(session: InferenceSession) -> None:
    with pytest.raises(InputError, match="is a list; expected a dictionary of arrays by input name"):
        session.run(None, [sample_input()])  # type: ignore[arg-type]
