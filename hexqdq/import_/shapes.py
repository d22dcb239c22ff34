"""Makes the graph inputs static from the shapes that the user gives."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from hexqdq.errors import ModelError

Shapes = Mapping[str, tuple[int, ...]]


def fix_input_shapes(model: ir.Model, given: Shapes) -> int:
    """Sets every input's dynamic dimensions from ``given``; a symbol bound by one input counts for all.

    Returns how many inputs changed. Raises ModelError for a name that is no input, a shape that
    contradicts the model, and an input that is still dynamic.
    """
    inputs = {value.name: value for value in model.graph.inputs}
    for name in given:
        if name not in inputs:
            known = ", ".join(str(n) for n in inputs)
            raise ModelError(f"input {name!r}", f"the model has no such input; it has {known}", "correct --input-shape")
    symbols: dict[str, int] = {}
    for name, shape in given.items():
        symbols |= _match(inputs[name], shape)
    changed = sum(_apply(value, given.get(str(value.name)), symbols) for value in model.graph.inputs)
    if changed:
        _forget_dynamic(model)
    return changed


def _match(value: ir.Value, shape: tuple[int, ...]) -> dict[str, int]:
    """Checks a given shape against the declared one; the symbols that it binds."""
    if any(size <= 0 for size in shape):
        raise ModelError(f"input {value.name!r}", f"--input-shape gives {_text(shape)}", "give positive sizes")
    if value.shape is None:
        return {}
    fits = len(value.shape) == len(shape) and all(
        not isinstance(declared, int) or declared == size for declared, size in zip(value.shape, shape, strict=True)
    )
    if not fits:
        raise ModelError(
            f"input {value.name!r}",
            f"has shape {_text(value.shape)}; --input-shape gives {_text(shape)}",
            "give a shape that keeps the static sizes",
        )
    pairs = zip(value.shape, shape, strict=True)
    return {dim.value: size for dim, size in pairs if isinstance(dim, ir.SymbolicDim) and dim.value}


def _example(dim: int | ir.SymbolicDim) -> str:
    """A dimension as an option's example shows it; what is below 0 is open."""
    if isinstance(dim, int):
        return str(dim) if dim >= 0 else "1"
    return dim.value or "N"


def _apply(value: ir.Value, given: tuple[int, ...] | None, symbols: Mapping[str, int]) -> int:
    if given is None and value.shape is not None:
        given = tuple(_bound(dim, symbols) for dim in value.shape)
    if given is None or any(size < 0 for size in given):
        shape = _text(value.shape) if value.shape is not None else "unknown"
        names = [d.value or "N" for d in value.shape or () if not isinstance(d, int)]
        example = "x".join(_example(d) for d in value.shape or ())
        numbers = f" with numbers for {', '.join(dict.fromkeys(names))}" if names else " (for example)"
        raise ModelError(
            f"input {value.name!r}",
            f"has dynamic dimensions: its shape is {shape}",
            f"give its static shape: --input-shape {value.name}:{example or '1x3x224x224'}{numbers}",
        )
    if value.shape is not None and tuple(value.shape) == given:
        return 0
    value.shape = ir.Shape(given)
    return 1


def _bound(dim: int | ir.SymbolicDim, symbols: Mapping[str, int]) -> int:
    return dim if isinstance(dim, int) else symbols.get(dim.value or "", -1)


def _forget_dynamic(model: ir.Model) -> None:
    """Drops inferred shapes with dynamic dimensions, so that inference derives them anew."""
    for node in model.graph.all_nodes():
        for value in node.outputs:
            if value.shape is not None and not value.shape.is_static():
                value.shape = None


def _text(shape: ir.Shape | tuple[int, ...]) -> str:
    return "x".join(str(dim) if isinstance(dim, int) else str(dim.value or "?") for dim in shape) or "scalar"
