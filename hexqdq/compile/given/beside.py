"""What --dump writes beside a segment's TOSA text, so that compile can start there again.

The text has weights as arguments and unsigned edges as i8; the file has the weights' values and the
edges as they are.
"""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np

from hexqdq.compile.product import TosaSegment
from hexqdq.errors import ModelError
from hexqdq.ops.unit import Array, Tensor

EDGES = "edges"


def packed(segment: TosaSegment) -> bytes:
    """Constants and edges as an .npz file."""
    edges = {
        "inputs": [tensor.to_json() for tensor in segment.inputs],
        "outputs": [tensor.to_json() for tensor in segment.outputs],
        "constants": [name for name, _ in segment.constants],
    }
    text = np.frombuffer(json.dumps(edges).encode(), np.uint8)
    values = {f"constant{index}": array for index, (_, array) in enumerate(segment.constants)}
    file = io.BytesIO()
    np.savez(file, **{EDGES: text, **values})
    return file.getvalue()


def joined(given: TosaSegment, text: str, data: bytes, source: str) -> TosaSegment:
    """The segment of a dumped text with its constants and edges; raises ModelError where they do not fit.

    It keeps the text itself unless constants were moved out of it.
    """
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            edges: dict[str, Any] = json.loads(archive[EDGES].tobytes())
            names: list[str] = edges["constants"]
            constants = tuple((name, archive[f"constant{index}"]) for index, name in enumerate(names))
        inputs, outputs = (tuple(map(Tensor.from_json, edges[side])) for side in ("inputs", "outputs"))
    except Exception as error:
        problem = f"does not hold the segment's constants and edges: {type(error).__name__} {error}"
        raise ModelError(source, problem, "dump the segment again, or remove the file") from error
    check_fit(given, inputs, outputs, constants, source)
    return TosaSegment(
        given.name, given.text if given.constants else text, inputs, outputs, (*constants, *given.constants)
    )


def check_fit(
    given: TosaSegment,
    inputs: tuple[Tensor, ...],
    outputs: tuple[Tensor, ...],
    constants: tuple[tuple[str, Array], ...],
    source: str,
) -> None:
    """The text's arguments are the inputs and then the constants, its results the outputs."""
    found = [(tensor.shape, tensor.dtype.bits) for tensor in (*given.inputs, *given.outputs)]
    stored = [(values.shape, values.dtype.itemsize * 8) for _, values in constants]
    expected = [*map(_form, inputs), *stored, *map(_form, outputs)]
    if found != expected:
        problem = f"is for {len(inputs)} inputs, {len(stored)} constants and {len(outputs)} outputs of other shapes"
        hint = "remove the file if the text takes its weights as inputs"
        raise ModelError(source, f"{problem} than the text beside it has", hint)


def _form(tensor: Tensor) -> tuple[tuple[int, ...], int]:
    return tensor.shape, min(tensor.dtype.bits, 32)
