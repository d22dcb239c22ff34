"""Where a segment runs: the numpy reference, this machine, or a Hexagon under qemu."""
