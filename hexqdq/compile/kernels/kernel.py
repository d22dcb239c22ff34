"""A kernel: the text of its function and what it is called with."""

from __future__ import annotations

from dataclasses import dataclass

NAME = "KERNEL"
"""Stands in a kernel's text for its name, so that equal kernels have equal texts."""


@dataclass(frozen=True)
class BufferOperand:
    """A buffer of the segment by name."""

    buffer: str
    reads: bool
    writes: bool


@dataclass(frozen=True)
class PackedOperand:
    """Constant bytes made for this kernel: packed weights, folded biases, numbers."""

    values: bytes


@dataclass(frozen=True)
class ScratchOperand:
    """Arena bytes that live as long as the call."""

    nbytes: int


KernelOperand = BufferOperand | PackedOperand | ScratchOperand


@dataclass(frozen=True)
class Kernel:
    """One call: operands are the function's arguments in order."""

    label: str
    text: str
    operands: tuple[KernelOperand, ...]
