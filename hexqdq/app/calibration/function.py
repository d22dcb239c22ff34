"""``module:function``: feeds from Python code."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from pathlib import Path
from typing import Any

import numpy as np

from hexqdq.app.calibration.signature import Feed, Inputs, fitted, named, place
from hexqdq.errors import CalibrationError

FORM = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
EXPECTED = "expected an iterable of feeds: dictionaries of arrays by input name"
HINT = "return or yield a dictionary of numpy arrays, keyed by input name, per sample"


class Feeds:
    """What a function returned, checked feed by feed."""

    def __init__(self, source: str, feeds: Iterable[Any], inputs: Inputs) -> None:
        self._source, self._feeds, self._inputs = source, feeds, inputs

    def __iter__(self) -> Iterator[Feed]:
        iterator = iter(self._feeds)
        index = 0
        while (found := self._next(iterator, index)) is not self:
            yield self._feed(found, f"{self._source}, sample {index}")
            index += 1

    def _next(self, iterator: Iterator[Any], index: int) -> Any:
        """The next feed, or this object at the end; the function's own errors are named."""
        try:
            return next(iterator, self)
        except (Exception, SystemExit) as error:
            raise _raised(f"{self._source}, sample {index}", error) from error

    def _feed(self, found: object, where: str) -> Feed:
        if not isinstance(found, Mapping):
            raise CalibrationError(where, f"is {type(found).__name__}; expected arrays by input name", HINT)
        unknown = [str(name) for name in found if name not in self._inputs]
        if unknown:
            problem = f"has {unknown[0]!r}, which is no input; expected {', '.join(self._inputs)}"
            raise CalibrationError(where, problem, HINT)
        return {
            name: fitted(place(where, name), np.asarray(named(where, found, name)), signature, HINT)
            for name, signature in self._inputs.items()
        }


class CountedFeeds(Feeds):
    """Feeds of a known number."""

    def __init__(self, source: str, feeds: Iterable[Any], inputs: Inputs, count: int) -> None:
        super().__init__(source, feeds, inputs)
        self._count = count

    def __len__(self) -> int:
        return self._count


def call(source: str, inputs: Inputs) -> Feeds:
    """The feeds of the function named ``module:function``, found from the current folder too."""
    function = _function(source)
    try:
        feeds = function()
    except (Exception, SystemExit) as error:
        raise _raised(source, error) from error
    if not isinstance(feeds, Iterable) or isinstance(feeds, Mapping | str | bytes | np.ndarray):
        raise CalibrationError(source, f"returned {type(feeds).__name__}; {EXPECTED}", HINT)
    return CountedFeeds(source, feeds, inputs, len(feeds)) if isinstance(feeds, Sized) else Feeds(source, feeds, inputs)


def _function(source: str) -> Callable[[], Any]:
    module_name, _, path = source.partition(":")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module_name)
        for name in path.split("."):
            found = getattr(found, name)
    except (Exception, SystemExit) as error:
        problem = f"cannot be imported: {type(error).__name__}: {error}"
        raise CalibrationError(source, problem, "give module:function of an installed module or one here") from error
    finally:
        sys.path.remove(here)
    if not callable(found):
        raise CalibrationError(source, f"is {type(found).__name__}; expected a function without arguments", HINT)
    function: Callable[[], Any] = found
    return function


def _raised(source: str, error: BaseException) -> CalibrationError:
    problem = f"raised {type(error).__name__}: {error}; {EXPECTED}"
    return CalibrationError(source, problem, "call the function by itself to see where")
