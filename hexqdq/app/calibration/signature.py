"""What a model takes as an input, and the check of an array against it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq.errors import CalibrationError

Array = NDArray[Any]
Feed = dict[str, Array]


@dataclass(frozen=True)
class Signature:
    """What a model takes as one input: its static shape and its numpy type."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __str__(self) -> str:
        return f"{self.dtype} {self.shape}"


Inputs = Mapping[str, Signature]


def place(source: object, name: str) -> str:
    """How errors name one input's array in a file."""
    return f"{source}[{name!r}]"


def fitted(where: str, array: Array, expected: Signature, hint: str) -> Array:
    """The sample, dense and in the input's type; raises CalibrationError where shape, type or values do not fit."""
    if array.shape != expected.shape:
        raise CalibrationError(where, f"has shape {array.shape}; expected {expected.shape}", hint)
    return _finite(where, typed(where, array, expected.dtype))


def typed(where: str, array: Array, dtype: np.dtype[Any]) -> Array:
    """The values in the input's type; floats may be wider or narrower, integers must keep their values."""
    kinds = ("f",) if dtype.kind == "f" else ("i", "u") if dtype.kind in "iu" else (dtype.kind,)
    if array.dtype.kind not in kinds:
        raise CalibrationError(
            where, f"holds {array.dtype}; expected {dtype}", f"convert it with astype({str(dtype)!r})"
        )
    with np.errstate(over="ignore"):
        values = np.asarray(array, dtype, order="C")
    if dtype.kind in "iu" and not np.array_equal(values, array):
        bounds = np.iinfo(dtype)
        found = f"holds values {array.min()}..{array.max()}; expected {dtype}, {bounds.min}..{bounds.max}"
        raise CalibrationError(where, found, "store the values that the model takes")
    return values


def _finite(where: str, values: Array) -> Array:
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        kind, bad = ("NaN", np.isnan(values)) if np.isnan(values).any() else ("infinite values", np.isinf(values))
        found = f"holds {kind} ({int(bad.sum())} of {values.size} values); expected finite numbers"
        raise CalibrationError(where, found, "remove the sample or mend what wrote it")
    return values


def named(source: object, arrays: Mapping[str, Array], name: str) -> Array:
    """The array of an input; raises CalibrationError where there is none of its name."""
    if name not in arrays:
        held = ", ".join(arrays) or "no array"
        raise CalibrationError(
            str(source), f"has no {name!r}, only {held}; expected it", "name the arrays after the model's inputs"
        )
    return arrays[name]


def only_input(source: object, inputs: Inputs, what: str) -> tuple[str, Signature]:
    """The input of a model that has one; raises CalibrationError where data without names meet several."""
    if len(inputs) != 1:
        raise CalibrationError(
            str(source),
            f"holds {what}, but the model has {len(inputs)} inputs ({', '.join(inputs)}); expected one",
            "give .npz files keyed by input name",
        )
    return next(iter(inputs.items()))
