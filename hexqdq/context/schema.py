"""The form of the JSON in a context file, as data, and the check of a document against it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hexqdq.compile.product import Area
from hexqdq.qtypes import QType

Form = Any
"""A type; ``[form]`` a list; ``{"key": form}`` an object of just these keys; ``{str: form}`` a map by
name; ``(form, form)`` one of several; None itself; a ``OneOf`` or ``Natural``."""


@dataclass(frozen=True)
class OneOf:
    """One of some texts."""

    texts: tuple[str, ...]


@dataclass(frozen=True)
class Natural:
    """A whole number from 0 to 2**48: sizes, offsets, indices."""

    limit: int = 1 << 48


SIZE = Natural()
NUMBER = (int, float)

PARAMS = {
    "dtype": OneOf(tuple(member.label for member in QType)),
    "scale": [NUMBER],
    "zero_point": [int],
    "axis": (SIZE, None),
}
TENSOR = {"name": str, "shape": [SIZE], "dtype": PARAMS["dtype"], "params": (PARAMS, None)}
SECTION = {"name": str, "offset": SIZE, "nbytes": SIZE, "sha256": str}
SEGMENT = {
    "name": str,
    "inputs": [TENSOR],
    "outputs": [TENSOR],
    "arena_bytes": SIZE,
    "constants_bytes": SIZE,
    "objects": [str],
    "has_units": bool,
}
HEADER = {
    "target": str,
    "digest": str,
    "versions": {str: str},
    "inputs": [TENSOR],
    "outputs": [TENSOR],
    "segments": [SEGMENT],
    "sections": [SECTION],
}
EDGE = {"value": str, "tensor": TENSOR, "is_float": bool}
GRAPH = [
    (
        {"segment": str, "inputs": [EDGE], "outputs": [EDGE]},
        {"host": str, "inputs": [str], "outputs": [str]},
    )
]
DECISION = {"node": str, "op_type": str, "segment": (SIZE, None), "reason": (str, None), "macs": SIZE}
REPORT = {"decisions": [DECISION], "origin": {str: [str]}}
UNIT = {
    "name": str,
    "op_type": str,
    "inputs": [(TENSOR, None)],
    "outputs": [TENSOR],
    "attributes": {str: (NUMBER, str, [NUMBER])},
    "constants": [str],
    "clamp": ([(NUMBER, None)], None),
    "source_nodes": [str],
}
UNITS = {
    "graph": {"name": str, "inputs": [TENSOR], "outputs": [TENSOR], "units": [UNIT]},
    "constants": [{"name": str, "dtype": str, "shape": [SIZE], "offset": SIZE}],
}
OPERAND = {
    "area": OneOf(tuple(area.value for area in Area)),
    "nbytes": SIZE,
    "offset": SIZE,
    "index": SIZE,
    "reads": bool,
    "writes": bool,
}
STEP = {
    "kernel": str,
    "operands": [OPERAND],
    "after": [SIZE],
    "thread": SIZE,
    "start": SIZE,
    "end": SIZE,
    "label": str,
}
STEPS = {
    "steps": [STEP],
    "inputs": [TENSOR],
    "outputs": [TENSOR],
    "arena_bytes": SIZE,
    "constants_bytes": SIZE,
}


def check(data: Any, form: Form, place: str = "") -> Any:
    """``data`` as it is; raises ValueError naming the place in it that is not of the form."""
    if isinstance(form, tuple):
        return _check_choice(data, form, place)
    if isinstance(form, list):
        _expect(isinstance(data, list), data, "a list", place)
        for index, item in enumerate(data):
            check(item, form[0], f"{place}[{index}]")
    elif isinstance(form, Mapping):
        _check_object(data, form, place)
    elif isinstance(form, OneOf):
        _expect(isinstance(data, str) and data in form.texts, data, f"one of {', '.join(form.texts)}", place)
    elif isinstance(form, Natural):
        whole = isinstance(data, int) and not isinstance(data, bool)
        _expect(whole and 0 <= data < form.limit, data, "a whole number from 0", place)
    elif form is None:
        _expect(data is None, data, "null", place)
    else:
        fits = isinstance(data, form) and (form is bool or not isinstance(data, bool))
        _expect(fits, data, f"of type {form.__name__}", place)
    return data


def _expect(holds: bool, data: Any, what: str, place: str) -> None:
    if not holds:
        raise ValueError(f"{place or 'the document'} is {str(data)[:60]!r}; expected {what}")


def _check_object(data: Any, form: Mapping[Any, Form], place: str) -> None:
    _expect(isinstance(data, dict), data, "an object", place)
    if str in form:
        for key, value in data.items():
            check(value, form[str], f"{place}.{key}")
        return
    _expect(set(data) == set(form), sorted(data), f"the keys {', '.join(sorted(form))}", place)
    for key, value in data.items():
        check(value, form[key], f"{place}.{key}")


def _check_choice(data: Any, forms: tuple[Form, ...], place: str) -> Any:
    """Checks against each form; the complaint of the last but None is told, as the others are simpler."""
    complaints = []
    for form in forms:
        try:
            return check(data, form, place)
        except ValueError as error:
            complaints.append((form is not None, str(error)))
    raise ValueError(max(complaints, key=lambda complaint: complaint[0])[1])
