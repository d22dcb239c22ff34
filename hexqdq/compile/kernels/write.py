"""The kernel of a node."""

from __future__ import annotations

from hexqdq.compile.kernels.contraction import write_contraction
from hexqdq.compile.kernels.kernel import Kernel
from hexqdq.compile.kernels.nest import write_nest
from hexqdq.compile.kernels.style import Style
from hexqdq.compile.kernels.writer import KernelWriter
from hexqdq.compile.linalg.nest import Contraction, Function, Node


def write_kernel(node: Node, function: Function, style: Style) -> Kernel:
    """The node's parts, one after the other, as one function."""
    writer = KernelWriter(function.buffers, function.values, style)
    writer.bind(node, packed_buffers(node))
    for index, part in enumerate(node.parts):
        if index and style.overrun:
            writer.text.barrier()
        if isinstance(part, Contraction):
            write_contraction(writer, function, part)
        else:
            write_nest(writer, part)
    return writer.kernel(node.label)


def packed_buffers(node: Node) -> frozenset[str]:
    """Constants that the node reads in packed form only."""
    packed: set[str] = set()
    plain: set[str] = set()
    for part in node.parts:
        stages = [part.finish] if isinstance(part, Contraction) else list(part.stages)
        plain.update(access.buffer for stage in stages for access in (*stage.reads, *stage.tables))
        if isinstance(part, Contraction):
            packed.update(name for name in (part.weights.buffer, part.bias) if name is not None)
    return frozenset(packed - plain)
