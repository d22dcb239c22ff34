"""The executors on segments whose answers are known without a compiler."""

from __future__ import annotations

import dataclasses
import gc
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from hexqdq.compile.product import CompiledSegment
from hexqdq.context import file
from hexqdq.context.executors import EXECUTOR_NAMES, host, make_executor
from hexqdq.context.executors.base import Counters
from hexqdq.context.executors.host import HostExecutor, HostSegment, best_object
from hexqdq.context.executors.qemu import QemuExecutor, QemuSegment
from hexqdq.errors import ExecutorError, InputError, UsageError
from hexqdq.ops import reference
from hexqdq.target import host_targets
from tests.context.objects import build_object
from tests.context.samples import INPUT, OUTPUT, conv_graph, conv_model, conv_segment

BASE_KEY = host_targets()[0].object_key
BEST_KEY = next(t.object_key for t in reversed(host_targets()) if t.cpu_flags <= host.cpu_flags())
CONSTANTS = np.frombuffer(conv_segment().constants, np.uint8)[:32].reshape(OUTPUT.shape)


def integers(seed: int = 0) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.random.default_rng(seed).integers(0, 256, INPUT.shape, np.uint8)


def expected(values: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], offset: int = 0) -> bytes:
    summed = values.ravel()[:32] + CONSTANTS.ravel() + np.uint8(offset)
    return summed.astype(np.uint8).tobytes()


def test_reference_is_the_units_meaning() -> None:
    x = integers()
    (y,) = make_executor("reference").load(conv_segment()).run([x])
    np.testing.assert_array_equal(y, reference.run(conv_graph(), {"x_q": x})["y_q"], strict=True)


def test_reference_without_units_is_told() -> None:
    with pytest.raises(ExecutorError, match="has no units"):
        make_executor("reference").load(dataclasses.replace(conv_segment(), graph=None))


def test_auto_is_host_and_an_unknown_executor_lists_the_names() -> None:
    assert make_executor("auto").name == "host"
    with pytest.raises(UsageError, match=", ".join(EXECUTOR_NAMES)):
        make_executor("device")


def test_host_runs_the_object_in_place(tmp_path: Path) -> None:
    compiled = conv_segment({BASE_KEY: build_object()})
    stored = file.read(file.write(conv_model(compiled), tmp_path / "a.ctx")).segments[0]
    for segment in (compiled, stored):
        (y,) = HostExecutor().load(segment).run([integers()])
        np.testing.assert_array_equal(y, np.frombuffer(expected(integers()), np.uint8).reshape(OUTPUT.shape))
        assert y.dtype == np.uint8


def test_constants_of_a_mapped_file_are_not_copied(tmp_path: Path) -> None:
    stored = file.read(file.write(conv_model(conv_segment({BASE_KEY: build_object()})), tmp_path / "a.ctx")).segments[0]
    loaded = HostSegment(stored)
    assert np.shares_memory(loaded._constants, np.frombuffer(stored.constants, np.uint8))


def test_host_takes_the_best_object_the_cpu_has() -> None:
    segment = conv_segment({BASE_KEY: build_object(offset=1), BEST_KEY: build_object(offset=2), "hexagon": b""})
    assert best_object(segment).object_key == BEST_KEY
    (y,) = HostExecutor().load(segment).run([integers()])
    assert y.tobytes() == expected(integers(), 2)


def test_host_falls_back_where_the_cpu_lacks_a_feature(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "cpu_flags", lambda: frozenset({"sse2"}))
    segment = conv_segment({BASE_KEY: build_object(offset=1), "x86_64-avx2": build_object(offset=2)})
    assert best_object(segment).object_key == BASE_KEY


def test_host_objects_do_not_take_each_others_place() -> None:
    for offset in range(6):
        loaded = HostExecutor().load(conv_segment({BASE_KEY: build_object(offset)}))
        assert loaded.run([integers()])[0].tobytes() == expected(integers(), offset)
        loaded.close()
        with pytest.raises(ExecutorError, match="closed"):
            loaded.run([integers()])


def test_host_gives_its_files_back() -> None:
    segment = conv_segment({BASE_KEY: build_object()})
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for _ in range(5):
        HostExecutor().load(segment).run([integers()])
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_host_says_why_it_cannot() -> None:
    for objects, words in (
        ({"hexagon": b"x"}, "has objects for hexagon; this .* runs"),
        ({BASE_KEY: b"no ELF at all"}, "does not load"),
        ({BASE_KEY: build_object(source="int other(void) { return 0; }")}, "has no function hexqdq_segment"),
    ):
        with pytest.raises(ExecutorError, match=words):
            HostExecutor().load(conv_segment(objects))
    with pytest.raises(ExecutorError, match="ended with status 9"):
        HostExecutor().load(conv_segment({BASE_KEY: build_object(status=9)})).run([integers()])


def test_host_runs_from_many_threads() -> None:
    loaded = HostExecutor().load(conv_segment({BASE_KEY: build_object()}))
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda seed: loaded.run([integers(seed)])[0].tobytes(), range(200)))
    assert answers == [expected(integers(seed)) for seed in range(200)]


@pytest.mark.parametrize(
    "inputs",
    [[], [np.zeros((1, 3, 4, 5), np.uint8)], [np.zeros(INPUT.shape, np.int8)], [integers(), integers()]],
)
def test_wrong_inputs_never_reach_the_object(inputs: list[np.ndarray[tuple[int, ...], np.dtype[np.uint8]]]) -> None:
    segment = conv_segment({BASE_KEY: build_object()})
    for name in ("reference", "host"):
        with pytest.raises(InputError, match="expected"):
            make_executor(name).load(segment).run(inputs)


def test_a_strided_input_is_the_same_input() -> None:
    strided = np.repeat(integers(), 2, axis=3)[..., ::2]
    assert not strided.flags.c_contiguous
    loaded = HostExecutor().load(conv_segment({BASE_KEY: build_object()}))
    assert loaded.run([strided])[0].tobytes() == expected(integers())


def guest(
    behaviour: str = "well", timeout_seconds: float = 30.0, segment: CompiledSegment | None = None
) -> QemuSegment:
    command = (sys.executable, str(Path(__file__).with_name("fake_guest.py")), behaviour)
    loaded = QemuExecutor(command, timeout_seconds).load(segment or conv_segment())
    assert isinstance(loaded, QemuSegment)
    return loaded


def test_a_guest_serves_many_requests_in_one_process() -> None:
    loaded = guest()
    process = loaded._guest._process.pid
    before = loaded.last_counters
    assert before is None
    for seed in range(5):
        (y,) = loaded.run([integers(seed)])
        wanted = (integers(seed).ravel()[:32] + CONSTANTS.ravel()[0]).astype(np.uint8).tobytes()
        assert (y.shape, y.tobytes()) == (OUTPUT.shape, wanted)
    assert loaded.last_counters == Counters(100, 200, 50)
    assert loaded._guest._process.pid == process


def test_a_guest_takes_turns() -> None:
    loaded = guest()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda seed: loaded.run([integers(seed)])[0].tobytes(), range(64)))
    assert answers == [loaded.run([integers(seed)])[0].tobytes() for seed in range(64)]


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        ("die", r"ended 16 bytes short of its answer of 16 \(exit status 1\): a packet of no meaning at 0x1234"),
        ("short", r"ended 32 bytes short .*\(exit status 3\): it said nothing"),
        ("hang", r"answers no further for 1\.5 s \(still running\)"),
        ("status", "ended with status 7"),
    ],
)
def test_a_failing_guest_is_told(behaviour: str, words: str) -> None:
    loaded = guest(behaviour, 1.5)
    with pytest.raises(ExecutorError, match=words) as caught:
        loaded.run([integers()])
    assert caught.value.hint
    if behaviour != "status":
        with pytest.raises(ExecutorError, match="has ended"):
            loaded.run([integers()])


def test_a_guest_of_another_tongue_is_told() -> None:
    with pytest.raises(ExecutorError, match="answered 0xbad; expected 0x51445848"):
        guest("magic")


def test_a_guest_that_does_not_start_is_told() -> None:
    with pytest.raises(ExecutorError, match="does not start"):
        QemuExecutor(("/no/such/qemu",)).load(conv_segment())
    with pytest.raises(ExecutorError, match="ended"):
        QemuExecutor((sys.executable, "-c", "import sys; sys.exit(4)")).load(conv_segment())


def test_a_guest_that_reads_nothing_is_told() -> None:
    segment = dataclasses.replace(conv_segment(), constants=bytes(1 << 22))
    with pytest.raises(ExecutorError, match="reads no further"):
        QemuExecutor((sys.executable, "-c", "import time; time.sleep(60)"), 1.0).load(segment)


def test_a_guest_ends_with_its_segment() -> None:
    loaded = guest()
    process = loaded._guest._process
    loaded.close()
    loaded.close()
    assert process.poll() is not None
    loaded = guest()
    process = loaded._guest._process
    del loaded
    gc.collect()
    assert process.poll() is not None


def test_qemu_needs_a_hexagon_object_and_qemu(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ExecutorError, match="has objects for x86_64; expected one for hexagon"):
        QemuExecutor().load(conv_segment({"x86_64": b""}))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ExecutorError, match="qemu-hexagon is not on the PATH") as caught:
        QemuExecutor().load(conv_segment())
    assert "qemu-user" in caught.value.hint


def test_closing_while_threads_run_ends_cleanly() -> None:
    loaded = HostExecutor().load(conv_segment({BASE_KEY: build_object()}))
    started = threading.Event()

    def work() -> None:
        while True:
            loaded.run([integers()])
            started.set()

    with ThreadPoolExecutor(4) as pool:
        workers = [pool.submit(work) for _ in range(4)]
        started.wait(10)
        loaded.close()
        for worker in workers:
            assert isinstance(worker.exception(10), ExecutorError)
