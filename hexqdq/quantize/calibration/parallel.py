"""Samples worked on in several threads, with results that do not depend on the number of threads."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

MOST_THREADS = 8
IN_FLIGHT_BYTES = 1 << 29
"""What the samples worked on at once may take together; a single one takes what it takes."""


def threads_for(bytes_each: int) -> int:
    """Threads to use: one per core of the process, fewer where a sample takes ``bytes_each`` of much."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, MOST_THREADS, IN_FLIGHT_BYTES // max(bytes_each, 1)))


def in_order(work: Callable[[int, Item], Result], items: Iterable[Item], threads: int) -> Iterator[Result]:
    """``work(index, item)`` of each item, in their order.

    At most ``threads`` items are held; they are drawn by the caller's thread. The first error in the
    items' order is raised, whichever came first in time.
    """
    if threads == 1:
        for index, item in enumerate(items):
            result = work(index, item)
            del item
            yield result
        return
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="hexqdq-calibration") as pool:
        for index, item in enumerate(items):
            waiting.append(pool.submit(work, index, item))
            del item
            if len(waiting) == threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
