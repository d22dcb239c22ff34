"""Grows convex segments: units that can run as one piece, without waiting for the CPU in between."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Dependencies:
    """Items 0..n-1 in topological order: ``before`` lists what each waits for, ``on_npu`` where it runs."""

    before: tuple[frozenset[int], ...]
    on_npu: tuple[bool, ...]

    def after(self) -> list[set[int]]:
        """What waits for each item."""
        result: list[set[int]] = [set() for _ in self.before]
        for item, sources in enumerate(self.before):
            for source in sources:
                result[source].add(item)
        return result


def segments(items: Dependencies) -> list[tuple[int, ...]]:
    """The NPU items in convex groups, as few as merging in order gives.

    Items are grouped by how often the way to them changes sides (odd levels are the NPU's), which
    is convex; then groups merge wherever no path leaves the union and comes back.
    """
    groups: dict[int, set[int]] = {}
    level: list[int] = []
    for item, sources in enumerate(items.before):
        base = max((level[source] for source in sources), default=0)
        level.append(base if base % 2 == items.on_npu[item] else base + 1)
        if items.on_npu[item]:
            groups.setdefault(level[-1], set()).add(item)
    return [tuple(sorted(group)) for group in _merged(items, [groups[key] for key in sorted(groups)])]


def _merged(items: Dependencies, groups: list[set[int]]) -> list[set[int]]:
    """Groups joined two by two, each to the first that it can join while segments still have an order."""
    after = items.after()
    index = 0
    while index < len(groups):
        for other in range(index):
            rest = [group for number, group in enumerate(groups) if number not in (index, other)]
            if is_convex(after, groups[index] | groups[other], rest):
                groups[other] |= groups.pop(index)
                break
        else:
            index += 1
    return groups


def is_convex(after: Sequence[set[int]], group: set[int], others: Sequence[set[int]]) -> bool:
    """Whether no path leaves the group and comes back, other segments running as wholes."""
    segment = {item: other for other in others for item in other}
    waiting = [item for member in group for item in after[member] - group]
    seen: set[int] = set()
    while waiting:
        item = waiting.pop()
        if item in seen:
            continue
        whole = segment.get(item, {item})
        seen |= whole
        following = {f for member in whole for f in after[member]} - whole
        if following & group:
            return False
        waiting.extend(following - seen)
    return True


@dataclass(frozen=True)
class Batch:
    """What runs as one part: an NPU segment (its number) or CPU items."""

    segment: int | None
    items: tuple[int, ...]


def schedule(items: Dependencies, groups: Sequence[tuple[int, ...]]) -> list[Batch]:
    """Parts in an order in which they can run: every segment as soon as it is ready, CPU items in batches between."""
    done: set[int] = set()
    waiting_groups = list(range(len(groups)))
    waiting_items = [item for item, npu in enumerate(items.on_npu) if not npu]
    batches: list[Batch] = []
    while waiting_groups or waiting_items:
        ready = [number for number in waiting_groups if _is_ready(items, groups[number], done)]
        if ready:
            batches += [Batch(number, groups[number]) for number in ready]
            done.update(item for number in ready for item in groups[number])
            waiting_groups = [number for number in waiting_groups if number not in ready]
            continue
        batch = _ready_items(items, waiting_items, done)
        assert batch, "segments must be convex"
        batches.append(Batch(None, tuple(batch)))
        waiting_items = [item for item in waiting_items if item not in done]
    return batches


def _is_ready(items: Dependencies, group: Iterable[int], done: set[int]) -> bool:
    members = set(group)
    return all(items.before[item] <= done | members for item in members)


def _ready_items(items: Dependencies, waiting: Sequence[int], done: set[int]) -> list[int]:
    """CPU items that can run now, one after the other; marks them done."""
    batch = []
    for item in waiting:
        if items.before[item] <= done:
            batch.append(item)
            done.add(item)
    return batch


def dependencies(count: int, before: Callable[[int], Iterable[int]], on_npu: Callable[[int], bool]) -> Dependencies:
    """Dependencies from functions of the item."""
    return Dependencies(
        tuple(frozenset(before(item)) for item in range(count)), tuple(on_npu(item) for item in range(count))
    )
