"""Calibrated ranges as a file, bound to the model they belong to."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hexqdq.errors import CalibrationError
from hexqdq.files import replace_file, writing
from hexqdq.quantize.observers.base import Knobs, Range
from hexqdq.quantize.recipe import Recipe

FORMAT = "hexqdq ranges 2"
AGAIN = "calibrate again, or name another file"


@dataclass(frozen=True)
class Ranges:
    """(low, high) of values by name: for element types of 8 bits, and for those of 16, which reach further."""

    narrow: Mapping[str, Range]
    wide: Mapping[str, Range]

    def without(self, names: Collection[str]) -> Ranges:
        """The ranges of the other values."""
        kept = ({n: span for n, span in known.items() if n not in names} for known in (self.narrow, self.wide))
        return Ranges(*kept)

    def over(self, other: Ranges) -> Ranges:
        """These, and those of ``other`` for the rest."""
        return Ranges({**other.narrow, **self.narrow}, {**other.wide, **self.wide})


@dataclass(frozen=True)
class SavedRanges:
    """``ranges`` that ``method`` with ``knobs`` found for the model of ``digest``; of no element type's own.

    Values that a repair pass scaled are not among them: their numbers are those of one recipe and its samples.
    """

    digest: str
    method: str
    knobs: Knobs
    ranges: Ranges

    def write(self, path: Path) -> None:
        """Writes JSON so that a reader finds either the old file or the whole new one."""
        data = {"format": FORMAT, **asdict(self)}
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, [json.dumps(data, indent=1, sort_keys=True).encode()])

    @classmethod
    def read(cls, path: Path) -> SavedRanges:
        """Raises CalibrationError where the file is none of ranges."""
        try:
            data: Any = json.loads(path.read_text(encoding="utf-8"))
            if data["format"] != FORMAT:
                raise ValueError(f"format is {data['format']!r}; expected {FORMAT!r}")
            ranges = Ranges(*(_ranges(data["ranges"][width]) for width in ("narrow", "wide")))
            return cls(str(data["digest"]), str(data["method"]), Knobs(**data["knobs"]), ranges)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            problem = f"cannot be read: {type(error).__name__} {error}"
            raise CalibrationError(f"ranges {path}", problem, AGAIN) from error

    def of(self, path: Path, digest: str, recipe: Recipe) -> Ranges:
        """The ranges, for the model of ``digest`` and a recipe; raises CalibrationError where they are of others."""
        subject = f"ranges {path}"
        if self.digest != digest:
            raise CalibrationError(subject, f"are of model {self.digest[:12]}; expected {digest[:12]}", AGAIN)
        if (self.method, self.knobs) != (recipe.method, recipe.knobs()):
            found = f"were found by {self.method} with {self.knobs}; the recipe says {recipe.method}, {recipe.knobs()}"
            raise CalibrationError(subject, found, AGAIN)
        return self.ranges


def _ranges(data: Mapping[str, Any]) -> dict[str, Range]:
    return {str(name): (float(low), float(high)) for name, (low, high) in data.items()}
