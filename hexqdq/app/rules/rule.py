"""Rules that carry their sentence: each says what was found where a node group breaks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from hexqdq.app.rules.group import Encoding, NodeGroup, Operand

Test = Callable[[NodeGroup], str | None]


@dataclass(frozen=True)
class Rule:
    """``test`` gives what was found where a group breaks the rule, else None."""

    sentence: str
    test: Test


@dataclass(frozen=True)
class Kind:
    """Ops that are judged alike."""

    name: str
    ops: tuple[str, ...]
    rules: tuple[Rule, ...]


def positions(*indices: int) -> Callable[[NodeGroup], tuple[int, ...]]:
    return lambda group: tuple(index for index in indices if group.input(index) is not None)


def everywhere(group: NodeGroup) -> tuple[int, ...]:
    """Every input that is there."""
    return tuple(index for index, operand in enumerate(group.inputs) if operand is not None)


def at(group: NodeGroup, indices: tuple[int, ...]) -> list[Operand]:
    """The inputs at the positions."""
    return [operand for index in indices if (operand := group.input(index)) is not None]


def read_through_dq(data: Callable[[NodeGroup], tuple[int, ...]], sentence: str) -> Rule:
    def test(group: NodeGroup) -> str | None:
        bare = [operand for operand in at(group, data(group)) if operand.encoding is None]
        return f"no DQ before {bare[0].value.name!r}" if bare else None

    return Rule(sentence, test)


def given_to_q(sentence: str, outputs: slice = slice(None)) -> Rule:
    """Each result is read by one Q and by nobody else; results that nobody reads do not count."""

    def test(group: NodeGroup) -> str | None:
        for operand in group.outputs[outputs]:
            if operand.encoding is None and operand.readers:
                return f"{operand.value.name!r} goes to {_readers(operand)}"
        return None

    return Rule(sentence, test)


def _readers(operand: Operand) -> str:
    if operand.value.is_graph_output():
        return "an output of the model"
    if operand.readers > 1:
        return f"{operand.readers} readers"
    (use,) = operand.value.uses()
    return str(use.node.op_type)


def no_q(sentence: str) -> Rule:
    def test(group: NodeGroup) -> str | None:
        quantized = [operand for operand in group.outputs if operand.encoding is not None]
        return f"a Q after {quantized[0].value.name!r}" if quantized else None

    return Rule(sentence, test)


def one_type(data: Callable[[NodeGroup], tuple[int, ...]], sentence: str) -> Rule:
    """The inputs at the positions and all results hold one type."""

    def test(group: NodeGroup) -> str | None:
        types = [encoding.dtype for encoding in encodings(group, data(group))]
        return " and ".join(dict.fromkeys(types)) if len(set(types)) > 1 else None

    return Rule(sentence, test)


def one_encoding(sentence: str) -> Rule:
    """Input 0 and the first result share scale and zero point."""

    def test(group: NodeGroup) -> str | None:
        found = list(encodings(group, (0,)))[:2]
        if len(found) < 2 or found[0].equals(found[1]):
            return None
        return f"{found[0]} before, {found[1]} after"

    return Rule(sentence, test)


def encodings(group: NodeGroup, indices: tuple[int, ...]) -> Iterator[Encoding]:
    """Those of the inputs at the positions, then those of the results."""
    for operand in (*at(group, indices), *group.outputs):
        if operand.encoding is not None:
            yield operand.encoding


def constant_at(indices: tuple[int, ...], sentence: str) -> Rule:
    def test(group: NodeGroup) -> str | None:
        computed = [operand for operand in at(group, indices) if operand.constant is None]
        return f"{computed[0].value.name!r} is computed" if computed else None

    return Rule(sentence, test)


def attribute_is(name: str, value: float, sentence: str, default: float) -> Rule:
    def test(group: NodeGroup) -> str | None:
        found = group.attribute(name, default)
        return None if found == value else f"{name} {found}"

    return Rule(sentence, test)


def fixed_encoding(levels: int, middle: bool, sentence: str) -> Rule:
    """The result's scale is 1 / ``levels`` (8 bits; 256 times as many at 16), 0 at the low end or in the middle."""

    def test(group: NodeGroup) -> str | None:
        found = group.outputs[0].encoding
        if found is None or found.dtype[1:] not in ("8", "16"):
            return None
        bits = int(found.dtype[1:])
        scale = np.float32(1 / (levels << (bits - 8)))
        zero_point = (1 << (bits - 1) if middle else 0) - (1 << (bits - 1) if found.dtype[0] == "s" else 0)
        if found.scale.size == 1 and found.scale.item() == scale and found.zero_point.item() == zero_point:
            return None
        return str(found)

    return Rule(sentence, test)
