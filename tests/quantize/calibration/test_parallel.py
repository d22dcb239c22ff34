"""Samples are worked on in parallel, and nobody can tell from the results."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from hexqdq.quantize.calibration.parallel import IN_FLIGHT_BYTES, MOST_THREADS, in_order, threads_for


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_keep_the_order_of_the_items(threads: int) -> None:
    def work(index: int, item: int) -> tuple[int, int]:
        time.sleep(0.002 * (item % 3))
        return index, item * item

    assert list(in_order(work, range(20), threads)) == [(i, i * i) for i in range(20)]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_first_error_in_order_is_raised(threads: int) -> None:
    def work(index: int, item: float) -> float:
        time.sleep(item)
        raise ValueError(f"item {index}")

    with pytest.raises(ValueError, match="item 0"):
        list(in_order(work, [0.02, 0.0, 0.0], threads))


def test_as_many_at_once_as_threads_and_items_are_drawn_by_the_caller() -> None:
    running, most = 0, 0
    lock, meet = threading.Lock(), threading.Barrier(3, timeout=10)
    drawn: list[int] = []

    def items() -> Iterator[int]:
        for item in range(9):
            drawn.append(threading.get_ident())
            yield item

    def work(index: int, item: int) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        meet.wait()
        with lock:
            running -= 1

    assert len(list(in_order(work, items(), 3))) == 9
    assert most == 3
    assert set(drawn) == {threading.get_ident()}


def test_large_samples_run_alone() -> None:
    assert threads_for(IN_FLIGHT_BYTES) == 1
    assert threads_for(1 << 62) == 1
    assert 1 <= threads_for(0) <= MOST_THREADS
