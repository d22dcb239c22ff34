"""Input channels of contractions in whole words of four bytes."""

from __future__ import annotations

from dataclasses import replace

from hexqdq.compile.linalg.nest import (
    Access,
    Buffer,
    Contraction,
    Form,
    Function,
    Nest,
    Node,
    Place,
    dense_strides,
)
from hexqdq.compile.linalg.read import copy, fill

WORD = 4
"""Channels in an activation word: one product of four bytes per lane."""


def padded_channels(function: Function) -> Function:
    """Activations of contractions get channels up to a multiple of four; the added ones have zero weights.

    A pad that only feeds the contraction writes the wider rows itself, other activations are copied.
    """
    buffers = dict(function.buffers)
    nodes: list[Node] = []
    readers = [name for node in function.nodes for name in node.reads()]
    for node in function.nodes:
        part = node.parts[0]
        if not isinstance(part, Contraction) or part.depth % WORD == 0:
            nodes.append(node)
            continue
        source = buffers[part.activation.buffer]
        wide = wide_buffer(source, part.depth, f"{source.name}w{len(nodes)}")
        buffers[wide.name] = wide
        producer = next((n for n in nodes if n.output == source.name), None)
        rows_match = source.shape[-1] == part.depth and readers.count(source.name) == 1
        if producer is not None and rows_match and is_pad(producer):
            nodes[nodes.index(producer)] = widened(producer, part.depth, wide)
        else:
            nodes.append(Node("pad channels", wide.name, tuple(rows(source, part.depth, wide))))
        nodes.append(replace(node, parts=(on_words(part, wide),)))
    return replace(function, buffers=buffers, nodes=tuple(nodes))


def rounded(depth: int) -> int:
    return -(-depth // WORD) * WORD


def wide_buffer(source: Buffer, depth: int, name: str) -> Buffer:
    """A buffer of the source's rows of ``depth`` channels, each widened to whole words."""
    elements = source.nbytes // depth
    return Buffer(name, (elements, rounded(depth)), "i8", Form.FLIPPED, Place.ARENA)


def rows(source: Buffer, depth: int, wide: Buffer) -> list[Nest]:
    """The source's rows in their places, zeros around them."""
    extents = (wide.shape[0], depth)
    read = Access(source.name, dense_strides(extents))
    write = Access(wide.name, (rounded(depth), 1))
    return [fill(wide.name, wide.shape, "i8", 0), copy(extents, "i8", read, write)]


def is_pad(node: Node) -> bool:
    """Whether the node is a fill and then a copy into it, channels last."""
    return node.label == "pad" and all(isinstance(part, Nest) and part.reduce is None for part in node.parts)


def widened(node: Node, depth: int, wide: Buffer) -> Node:
    """A pad's node writing rows of whole words."""
    first, second = node.parts
    assert isinstance(first, Nest) and isinstance(second, Nest)
    background = replace(first, extents=wide.shape, parallel=2, write=Access(wide.name, dense_strides(wide.shape)))
    return Node(node.label, wide.name, (background, replace(second, write=respread(second.write, depth, wide))))


def respread(access: Access, depth: int, wide: Buffer) -> Access:
    """An access to rows of ``depth`` channels as one to rows of whole words; the last loop runs over channels."""
    width = rounded(depth)
    strides = tuple(stride // depth * width for stride in access.strides[:-1])
    return Access(wide.name, (*strides, 1), access.offset // depth * width)


def on_words(part: Contraction, wide: Buffer) -> Contraction:
    """The contraction reading whole words."""
    taps = (*part.taps[:-1], rounded(part.depth))
    return replace(part, taps=taps, activation=respread(part.activation, part.depth, wide))
