"""The options of an InferenceSession: read from onnxruntime's arguments, checked by name and value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hexqdq.context.executors import EXECUTOR_NAMES
from hexqdq.errors import UsageError
from hexqdq.target import find_target

CORRECT = "correct what the session is given"

PROVIDER = "HexqdqExecutionProvider"
CPU_PROVIDER = "CPUExecutionProvider"
PROVIDERS = (PROVIDER, CPU_PROVIDER)

Provider = str | tuple[str, Mapping[str, Any]]


@dataclass(frozen=True)
class SessionOptions:
    """Where and how a session runs.

    ``target`` is checked against a context and chosen for a model; ``threads`` is for the parts on
    the CPU; ``disable_cpu_fallback`` refuses a model that has such parts.
    """

    executor: str = "auto"
    target: str | None = None
    cache_dir: Path | None = None
    threads: int | None = None
    disable_cpu_fallback: bool = False


def parse_options(
    providers: Sequence[Provider] | None, provider_options: Sequence[Mapping[str, Any]] | None
) -> SessionOptions:
    """The options of our provider; raises UsageError listing the valid names or values."""
    given: dict[str, Any] = {}
    for name, options in _pairs(providers, provider_options):
        if name not in PROVIDERS:
            raise UsageError(f"provider {name!r}", f"unknown; expected one of {', '.join(PROVIDERS)}", CORRECT)
        if name == PROVIDER:
            given.update(options)
        elif options:
            raise UsageError(f"provider {name!r}", f"takes no options; got {', '.join(options)}", CORRECT)
    for name in given:
        if name not in _PARSERS:
            raise UsageError(f"provider option {name!r}", f"unknown; expected one of {', '.join(_PARSERS)}", CORRECT)
    return SessionOptions(**{name: _PARSERS[name](name, value) for name, value in given.items()})


def _pairs(
    providers: Sequence[Provider] | None, provider_options: Sequence[Mapping[str, Any]] | None
) -> list[tuple[str, Mapping[str, Any]]]:
    """Providers with their options, from either argument as onnxruntime takes them."""
    named: list[tuple[str, Mapping[str, Any]]] = []
    for provider in providers or ():
        named.append((provider, {}) if isinstance(provider, str) else (provider[0], provider[1]))
    if provider_options is None:
        return named
    if isinstance(provider_options, Mapping) or not all(isinstance(entry, Mapping) for entry in provider_options):
        raise UsageError("provider_options", "expected a list of one dict of options for each provider", CORRECT)
    beside = named or [(PROVIDER, {})]
    if len(beside) != len(provider_options):
        problem = f"{len(provider_options)} dicts for {len(beside)} providers; expected one for each"
        raise UsageError("provider_options", problem, CORRECT)
    return [(name, {**own, **more}) for (name, own), more in zip(beside, provider_options, strict=True)]


def _invalid(name: str, value: object, expected: str) -> UsageError:
    return UsageError(f"provider option {name!r}", f"got {value!r}; expected {expected}")


def _executor(name: str, value: object) -> str:
    if value not in EXECUTOR_NAMES:
        raise _invalid(name, value, f"one of {', '.join(EXECUTOR_NAMES)}")
    return str(value)


def _target(name: str, value: object) -> str:
    return find_target(str(value)).name


def _folder(name: str, value: object) -> Path:
    if not isinstance(value, str | Path) or not str(value):
        raise _invalid(name, value, "the path of a folder")
    return Path(value)


def _count(name: str, value: object) -> int:
    text = "" if isinstance(value, bool) else str(value)
    if not (text.isdecimal() and int(text) > 0):
        raise _invalid(name, value, "a whole number above 0")
    return int(text)


_TRUTHS = {"1": True, "true": True, "0": False, "false": False}


def _flag(name: str, value: object) -> bool:
    truth = _TRUTHS.get(str(value).lower())
    if truth is None:
        raise _invalid(name, value, f"one of {', '.join(_TRUTHS)}")
    return truth


_PARSERS: dict[str, Callable[[str, object], Any]] = {
    "executor": _executor,
    "target": _target,
    "cache_dir": _folder,
    "threads": _count,
    "disable_cpu_fallback": _flag,
}
