"""Targets: what a Hexagon generation or a host can do and how fast, with the source of each figure."""

from __future__ import annotations

import platform
from dataclasses import dataclass

from hexqdq.errors import UsageError

HVX_MACS_PER_PACKET = 256
"""Two vrmpy of 32 lanes x 4 products a packet (counted under qemu)."""
HVX_BYTES_PER_PACKET = 128
"""One load of a vector a packet (counted under qemu)."""


@dataclass(frozen=True)
class Target:
    """One row: code generation by ``features``, prediction by the rates.

    ``cpu`` and ``llvm_features`` are LLVM's names; ``elf_flags`` go into the object's header.
    ``cpu_flags`` are the flags that a host must have. Rates are 0 where they do not apply.
    """

    name: str
    arch: str
    triple: str
    cpu: str
    llvm_features: str
    features: frozenset[str]
    elf_flags: int = 0
    vtcm_bytes: int = 0
    clock_hz: float = 0.0
    cpu_flags: frozenset[str] = frozenset()
    source: str = ""

    @property
    def is_hexagon(self) -> bool:
        return self.arch == "hexagon"

    @property
    def object_key(self) -> str:
        """The key of this target's shared object in a context: one for all Hexagons, one a host row."""
        return "hexagon" if self.is_hexagon else self.name.removeprefix("host-")


def _hexagon(version: int, vtcm_mb: int, clock_ghz: float, *, hmx: bool = True) -> Target:
    return Target(
        name=f"hexagon-v{version}",
        arch="hexagon",
        triple="hexagon-unknown-linux-musl",
        cpu="hexagonv67",
        llvm_features="+hvxv67,+hvx-length128b",
        features=frozenset({"hvx", "hmx"} if hmx else {"hvx"}),
        elf_flags=int(str(version), 16),
        vtcm_bytes=vtcm_mb << 20,
        clock_hz=clock_ghz * 1e9,
        source="VTCM and clock as published for the generation; code is v67 integer HVX on every row",
    )


_V3 = ("avx2", "fma", "bmi2", "f16c", "movbe")
_V4 = ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")


def _x86(
    name: str, cpu: str, flags: tuple[str, ...], llvm_features: str = "", features: frozenset[str] = frozenset()
) -> Target:
    return Target(
        name=name,
        arch="x86_64",
        triple="x86_64-unknown-linux-gnu",
        cpu=cpu,
        llvm_features=llvm_features,
        features=frozenset({"simd"}) | features,
        cpu_flags=frozenset(flags),
        source="x86-64 psABI micro-architecture levels",
    )


TARGETS: tuple[Target, ...] = (
    _hexagon(68, 4, 1.4),
    _hexagon(69, 8, 1.4),
    _hexagon(73, 8, 1.4),
    _hexagon(75, 8, 1.6),
    _hexagon(79, 8, 2.1),
    _hexagon(81, 8, 2.1),
    _x86("host-x86_64", "x86-64", ()),
    _x86("host-x86_64-avx2", "x86-64-v3", _V3),
    _x86("host-x86_64-vnni", "x86-64-v4", (*_V3, *_V4, "avx512_vnni"), "+avx512vnni", frozenset({"vnni"})),
    Target(
        name="host-aarch64",
        arch="aarch64",
        triple="aarch64-unknown-linux-gnu",
        cpu="generic",
        llvm_features="",
        features=frozenset({"simd"}),
        source="Armv8-A with Advanced SIMD",
    ),
)

DEFAULT_TARGET = "hexagon-v73"


def find_target(name: str) -> Target:
    """The row named ``hexagon-v73``, ``v73`` or ``host-x86_64``; raises UsageError with the valid names."""
    for target in TARGETS:
        if name in (target.name, target.name.removeprefix("hexagon-")):
            return target
    valid = ", ".join(target.name for target in TARGETS)
    raise UsageError(f"target {name!r}", f"unknown; expected one of {valid}", "choose one with --target")


def host_targets(machine: str | None = None) -> tuple[Target, ...]:
    """The host rows of a machine architecture (this one by default), the most portable first."""
    arch = {"amd64": "x86_64", "arm64": "aarch64"}.get((machine or platform.machine()).lower())
    return tuple(t for t in TARGETS if t.arch == (arch or (machine or platform.machine()).lower()))
