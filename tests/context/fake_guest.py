"""A stand-in for the Hexagon server: speaks its protocol; output = input 0 + first constant, as bytes.

The last argument but one is how it behaves; the last, the object's path, is what qemu would get.
"""

from __future__ import annotations

import struct
import sys
import time


def take(count: int) -> bytes:
    data = sys.stdin.buffer.read(count)
    if len(data) < count:
        sys.exit(0)
    return data


def words(count: int) -> tuple[int, ...]:
    return struct.unpack(f"<{count}I", take(4 * count))


def give(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def serve(behaviour: str) -> None:
    magic, inputs, outputs, _arena, constant_bytes = words(5)
    input_sizes, output_sizes = words(inputs), words(outputs)
    constants = take(constant_bytes)
    give(struct.pack("<I", 0xBAD if behaviour == "magic" else magic))
    while words(1) == (1,):
        feeds = [take(size) for size in input_sizes]
        if behaviour == "die":
            sys.exit("a packet of no meaning at 0x1234")
        if behaviour == "hang":
            time.sleep(600)
        give(struct.pack("<4I", 7 if behaviour == "status" else 0, 100, 200, 50))
        if behaviour == "short":
            sys.exit(3)
        for size in output_sizes:
            give(bytes((byte + constants[0]) % 256 for byte in feeds[0][:size]))


if __name__ == "__main__":
    with open(sys.argv[-1], "rb") as served:  # noqa: PTH123 - what a loader does
        assert served.read() == b"not really ELF"
    serve(sys.argv[-2])
