"""The memory plan, the step list and its checks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexqdq.compile.product import ALIGNMENT, Area, Operand, Step, StepList
from hexqdq.compile.schedule.arena import Lifetime, best_gap, planned
from hexqdq.compile.schedule.constants import ConstantSection
from hexqdq.compile.verify import STEP_CHECKS, verify_schedule
from hexqdq.errors import CompileError
from hexqdq.target import find_target
from tests.compile.running import compiled
from tests.compile.segments import Conv, Writer, conv_of
from tests.compile.test_segments import residual


@st.composite
def lifetimes(draw: st.DrawFn) -> list[Lifetime]:
    count = draw(st.integers(1, 12))
    sizes = draw(st.lists(st.integers(1, 2000), min_size=count, max_size=count))
    starts = draw(st.lists(st.integers(0, 10), min_size=count, max_size=count))
    spans = draw(st.lists(st.integers(0, 5), min_size=count, max_size=count))
    rows = zip(sizes, starts, spans, strict=True)
    return [Lifetime(f"b{i}", size, start, start + span) for i, (size, start, span) in enumerate(rows)]


@given(lifetimes(), st.sampled_from([0, 1024]))
def test_live_buffers_never_overlap(items: list[Lifetime], slack: int) -> None:
    offsets, total = planned(items, slack)
    for item in items:
        assert offsets[item.name] % ALIGNMENT == 0
        assert offsets[item.name] + item.nbytes + slack <= total
    for i, one in enumerate(items):
        for other in items[i + 1 :]:
            apart = (
                offsets[one.name] + one.nbytes + slack <= offsets[other.name]
                or offsets[other.name] + other.nbytes + slack <= offsets[one.name]
            )
            assert apart or not one.meets(other)


def test_buffers_that_do_not_meet_share_a_place() -> None:
    offsets, total = planned([Lifetime("a", 256, 0, 1), Lifetime("b", 256, 2, 3)], 0)
    assert offsets == {"a": 0, "b": 0} and total == 256


@pytest.mark.parametrize(("taken", "expected"), [([], 0), ([(0, 128), (384, 512)], 128), ([(0, 128), (256, 384)], 384)])
def test_the_smallest_gap_that_fits(taken: list[tuple[int, int]], expected: int) -> None:
    assert best_gap(taken, 256) == expected


def test_equal_constants_share_a_place() -> None:
    section = ConstantSection()
    places = [section.place(values) for values in (b"one", b"two", b"one")]
    assert places == [0, ALIGNMENT, 0] and len(section.finished(0)) == 2 * ALIGNMENT


def test_equal_kernels_are_one_function() -> None:
    writer = Writer()
    value = writer.input((1, 4, 4, 16))
    for seed in range(3):
        value = conv_of(writer, value, Conv(size=(4, 4), channels=16, kernel=1, pad=0, zero_point=seed), seed)
    steps = compiled(writer.segment(value)).steps.steps
    assert len(steps) == 3
    assert steps[0].kernel != steps[1].kernel, "an input at any address is another kernel than one in the arena"
    assert steps[1].after == (0,) and steps[2].after == (0, 1)


def test_a_segment_compiles_to_the_same_bytes() -> None:
    first, second = compiled(residual()), compiled(residual())
    assert dict(first.objects) == dict(second.objects)
    assert first.constants == second.constants and first.steps == second.steps


def test_the_hexagon_object_is_marked_for_its_target() -> None:
    assert compiled(residual()).objects["hexagon"][36] == find_target("v73").elf_flags


def good_list() -> StepList:
    """Two steps through 128 bytes of the arena."""
    return compiled(residual()).steps


def broken(change: str) -> StepList:
    steps = good_list()
    first, second, *rest = steps.steps
    if change == "outside":
        first = with_operand(first, 0, nbytes=1 << 40)
    elif change == "alignment":
        last = len(second.operands) - 1
        index = next(i for i in range(last + 1) if second.operands[i].area is Area.ARENA)
        second = with_operand(second, index, offset=second.operands[index].offset + 1, nbytes=1)
    elif change == "forwards":
        first = replace(first, after=(1,))
    elif change == "unwritten":
        extra = Operand(Area.ARENA, 16, steps.arena_bytes - ALIGNMENT, reads=True)
        first = replace(first, operands=(*first.operands, extra))
    elif change == "overlap":
        written = next(operand for operand in second.operands if operand.writes)
        second = replace(second, operands=(*second.operands, replace(written, reads=True)))
    return replace(steps, steps=(first, second, *rest))


def with_operand(step: Step, index: int, **changes: int) -> Step:
    operands = list(step.operands)
    operands[index] = replace(operands[index], **changes)  # type: ignore[arg-type]
    return replace(step, operands=tuple(operands))


def test_every_check_passes_on_a_compiled_list() -> None:
    steps = good_list()
    assert [check(steps) for check in STEP_CHECKS] == [None] * len(STEP_CHECKS)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("outside", "inside their areas"),
        ("alignment", "start on a vector"),
        ("forwards", "wait for earlier"),
        ("unwritten", "last written by one step"),
        ("overlap", "overlaps nothing else"),
    ],
)
def test_a_broken_list_is_refused(change: str, sentence: str) -> None:
    steps = broken(change)
    with pytest.raises(CompileError, match=sentence):
        verify_schedule(steps, steps.constants_bytes)
