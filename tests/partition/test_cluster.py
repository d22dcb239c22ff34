"""Segments are convex, complete, ordered and as few as merging gives, on drawn graphs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hexqdq.partition.cluster import Dependencies, is_convex, schedule, segments


@st.composite
def graphs(draw: st.DrawFn) -> Dependencies:
    count = draw(st.integers(1, 24))
    before = []
    for item in range(count):
        sources = st.sets(st.integers(0, item - 1), max_size=3) if item else st.just(set())
        before.append(frozenset(draw(sources)))
    sides = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    return Dependencies(tuple(before), tuple(sides))


@given(graphs())
def test_segments_hold_every_unit_once(items: Dependencies) -> None:
    grouped = [item for group in segments(items) for item in group]
    assert sorted(grouped) == [item for item, npu in enumerate(items.on_npu) if npu]


@given(graphs())
def test_schedule_runs_everything_after_what_it_waits_for(items: Dependencies) -> None:
    groups = segments(items)
    done: set[int] = set()
    for batch in schedule(items, groups):
        members = set(batch.items)
        for item in batch.items:
            assert items.before[item] <= done | members
            assert items.on_npu[item] == (batch.segment is not None)
        done |= members
    assert done == set(range(len(items.before)))


@given(graphs())
def test_no_two_segments_could_be_one(items: Dependencies) -> None:
    groups = [set(group) for group in segments(items)]
    after = items.after()
    for index, group in enumerate(groups):
        for other in groups[:index]:
            rest = [third for third in groups if third is not group and third is not other]
            assert not is_convex(after, group | other, rest)


def test_a_bridge_over_the_cpu_splits() -> None:
    items = Dependencies((frozenset(), frozenset({0}), frozenset({0, 1})), (True, False, True))
    assert segments(items) == [(0,), (2,)]


def test_an_early_unit_waits_for_its_only_reader() -> None:
    items = Dependencies((frozenset(), frozenset(), frozenset({0, 1})), (True, False, True))
    assert segments(items) == [(0, 2)]
    assert [batch.segment for batch in schedule(items, [(0, 2)])] == [None, 0]


def test_segments_that_wait_for_each_other_stay_apart() -> None:
    # 0 -> 1 (cpu) -> 2 and 3 -> 4 (cpu) -> 5, with 0 -> 3 and 5 -> ... crossing: no merge may make a cycle.
    before = ((), (0,), (1,), (), (3,), (4, 0), (3, 2))
    items = Dependencies(tuple(frozenset(b) for b in before), (True, False, True, True, False, True, True))
    groups = segments(items)
    assert {item for batch in schedule(items, groups) for item in batch.items} == set(range(7))
