"""Loops of nests without unit loops, and neighbours merged where every access allows."""

from __future__ import annotations

from dataclasses import replace

from hexqdq.compile.linalg.nest import Access, Body, Instruction, Nest, Part, Stage

Groups = tuple[tuple[int, ...], ...]
"""Loops by the merged loop that stands for them; a loop in no group has one iteration, an empty group too."""


def simplified(part: Part) -> Part:
    """The same computation with as few loops as its accesses allow."""
    if isinstance(part, Nest):
        return simplified_nest(part)
    accesses = [part.activation, part.write, *part.finish.reads]
    groups = merged(part.extents, range(len(part.extents)), accesses, frozenset())
    pixels = len(part.extents)
    rest = tuple((loop,) for loop in range(pixels, len(part.activation.strides)))
    finish_groups = (*groups, (pixels,))
    return replace(
        part,
        extents=tuple(extent_of(part.extents, group) for group in groups),
        activation=regrouped(part.activation, (*groups, *rest)),
        write=regrouped(part.write, finish_groups),
        finish=regrouped_stage(part.finish, finish_groups),
    )


def simplified_nest(nest: Nest) -> Nest:
    if nest.reduce is not None and nest.parallel == len(nest.extents):
        nest = with_one_term(nest, nest.reduce)
    indexed = frozenset(
        item.number for stage in nest.stages for item in stage.body.instructions if item.name == "index"
    )
    parallel = range(nest.parallel)
    everywhere = [nest.write, *(access for stage in nest.stages for access in stage.reads)]
    groups = merged(nest.extents, parallel, everywhere, indexed) or (((0,),) if nest.parallel else ((),))
    inner: Groups = ()
    if nest.reduce is not None:
        inner = merged(nest.extents, range(nest.parallel, len(nest.extents)), list(nest.reduce.reads), indexed)
        inner = inner or ((nest.parallel,),)
    return Nest(
        tuple(extent_of(nest.extents, group) for group in (*groups, *inner)),
        len(groups),
        regrouped(nest.write, groups),
        regrouped_stage(nest.finish, groups),
        regrouped_stage(nest.start, groups) if nest.start else None,
        regrouped_stage(nest.reduce, (*groups, *inner)) if nest.reduce else None,
    )


def with_one_term(nest: Nest, reduce: Stage) -> Nest:
    """A reduction over no loops as one over a single iteration."""
    reads = tuple(replace(access, strides=(*access.strides, 0)) for access in reduce.reads)
    return replace(nest, extents=(*nest.extents, 1), reduce=replace(reduce, reads=reads))


def merged(extents: tuple[int, ...], loops: range, accesses: list[Access], indexed: frozenset[int]) -> Groups:
    """Neighbouring loops in groups; loops of one iteration are left out, indexed ones stand alone."""
    groups: list[list[int]] = []
    for loop in loops:
        if extents[loop] == 1:
            continue
        last = groups[-1][-1] if groups else None
        alone = loop in indexed or last in indexed
        if (
            last is not None
            and not alone
            and all(access.strides[last] == access.strides[loop] * extents[loop] for access in accesses)
        ):
            groups[-1].append(loop)
        else:
            groups.append([loop])
    return tuple(tuple(group) for group in groups)


def extent_of(extents: tuple[int, ...], group: tuple[int, ...]) -> int:
    product = 1
    for loop in group:
        product *= extents[loop]
    return product


def regrouped(access: Access, groups: Groups) -> Access:
    """The access over merged loops: each steps as its innermost loop did; the step of an empty group is never taken."""
    return replace(access, strides=tuple(access.strides[group[-1]] if group else 1 for group in groups))


def regrouped_stage(stage: Stage, groups: Groups) -> Stage:
    numbers = {group[-1]: position for position, group in enumerate(groups) if group}
    items = tuple(renumbered(item, numbers) for item in stage.body.instructions)
    body = Body(stage.body.arguments, items, stage.body.result)
    return Stage(body, tuple(regrouped(access, groups) for access in stage.reads), stage.tables)


def renumbered(item: Instruction, numbers: dict[int, int]) -> Instruction:
    """A loop index under its new number; the index of a unit loop is 0."""
    if item.name != "index":
        return item
    if item.number in numbers:
        return replace(item, number=numbers[item.number])
    return Instruction("constant", (), item.type, 0)


def respaced(extents: tuple[int, ...], accesses: list[Access], target: tuple[int, ...]) -> list[Access] | None:
    """Accesses over dense loops ``extents`` as accesses over dense loops ``target``, None where that is not linear.

    Both spaces run over the same elements in row-major order. ``target`` has no unit loops.
    """
    loops = [loop for loop in range(len(extents)) if extents[loop] > 1]
    strides: list[list[int]] = [[] for _ in accesses]
    queue = [(extents[loop], [access.strides[loop] for access in accesses]) for loop in loops]
    for size in target:
        row = take(queue, size)
        if row is None:
            return None
        for column, stride in zip(strides, row, strict=True):
            column.append(stride)
    if queue:
        return None
    return [replace(access, strides=tuple(column)) for access, column in zip(accesses, strides, strict=True)]


def take(queue: list[tuple[int, list[int]]], size: int) -> list[int] | None:
    """Strides of a loop of ``size`` made of the front of the queue, splitting or merging its loops."""
    if not queue:
        return None
    extent, row = queue.pop(0)
    while extent < size and queue:
        following, inner = queue.pop(0)
        if row != [stride * following for stride in inner]:
            return None
        extent, row = extent * following, inner
    if extent == size:
        return row
    if extent % size:
        return None
    rest = extent // size
    queue.insert(0, (rest, row))
    return [stride * rest for stride in row]
