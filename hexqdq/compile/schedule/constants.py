"""The constant section: every distinct run of constant bytes once."""

from __future__ import annotations

from hexqdq.compile.product import ALIGNMENT


class ConstantSection:
    """Bytes appended so far; equal bytes share a place."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.places: dict[bytes, int] = {}

    def place(self, values: bytes) -> int:
        """The offset of the bytes, aligned to a vector."""
        if values not in self.places:
            self.data += bytes(-len(self.data) % ALIGNMENT)
            self.places[values] = len(self.data)
            self.data += values
        return self.places[values]

    def finished(self, slack: int) -> bytes:
        """The section with ``slack`` bytes behind it, in whole vectors."""
        size = len(self.data) + slack
        return bytes(self.data) + bytes(size - len(self.data) + (-size % ALIGNMENT))
