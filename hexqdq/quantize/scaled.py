"""Values that hold other numbers than the float model's under its names: told in the model's metadata.

A repair pass that scales channels between two nodes marks the values there, so that nobody takes the
factors for an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import onnx_ir as ir

KEY = "hexqdq.scaled"


def mark_scaled(model: ir.Model, names: Iterable[str]) -> None:
    """Adds names to the model's marks."""
    model.metadata_props[KEY] = json.dumps(sorted({*marked(model), *names}))


def marked(model: ir.Model) -> frozenset[str]:
    """The names of the marked values; none in a model whose marks nobody can read."""
    try:
        return frozenset(map(str, json.loads(model.metadata_props.get(KEY, "[]"))))
    except (ValueError, TypeError):
        return frozenset()
