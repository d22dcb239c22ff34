"""HardSwish and HardSigmoid from their parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from hexqdq.import_.patterns.polynomial import leaves, polynomial, same
from hexqdq.import_.patterns.reading import between, close, dims, maker, number, scalar
from hexqdq.import_.patterns.rule import Builder, Found


@dataclass(frozen=True)
class Ramp:
    """``clip(slope * data + offset, 0, top)``."""

    data: ir.Value
    slope: float
    offset: float
    top: float


def hard_swish(node: ir.Node) -> Found | None:
    """``x * clip(x / 6 + 1/2, 0, 1)``, in any order and scale (Howard et al. 2019, "Searching for MobileNetV3")."""
    if node.op_type not in ("Mul", "Div"):
        return None
    for bent, ramp in _ramps(leaves(node, depth=3)):
        factor = _only(polynomial(node.outputs[0], (ramp.data, bent)), (1, 1))
        if factor is not None and _is_standard(ramp, factor):
            return _found(node, ramp.data, "HardSwish")
    return None


def _is_standard(ramp: Ramp, factor: float) -> bool:
    return close(ramp.slope * factor, 1 / 6) and close(ramp.offset * factor, 0.5) and close(ramp.top * factor, 1.0)


def hard_sigmoid(node: ir.Node) -> Found | None:
    """``clip(x + b, 0, top) / top`` with b above 0."""
    if node.op_type not in ("Mul", "Div"):
        return None
    for bent, ramp in _ramps(leaves(node, depth=1)):
        factor = _only(polynomial(node.outputs[0], (bent,)), (1,))
        if factor is not None and ramp.offset > 0 and close(ramp.top * factor, 1.0):
            alpha, beta = (float(np.float32(value * factor)) for value in (ramp.slope, ramp.offset))
            return _found(node, ramp.data, "HardSigmoid", alpha=alpha, beta=beta)
    return None


def _only(found: dict[tuple[int, ...], float] | None, exponents: tuple[int, ...]) -> float | None:
    """The factor of a polynomial's only term, where that has these exponents and a factor above 0."""
    factor = None if found is None else found.get(exponents)
    return factor if factor is not None and factor > 0 and same(found, {exponents: factor}) else None


def _ramps(values: Iterable[ir.Value]) -> Iterator[tuple[ir.Value, Ramp]]:
    """The values that are a Clip of a line from 0 up, or a HardSigmoid, each by every value that the line may be of."""
    for value in values:
        made = maker(value, "Clip", "HardSigmoid")
        if made is None or made.inputs[0] is None:
            continue
        if made.op_type == "HardSigmoid":
            yield value, Ramp(made.inputs[0], number(made, "alpha", 0.2), number(made, "beta", 0.5), 1.0)
        else:
            yield from ((value, ramp) for ramp in _of_clip(made))


def _of_clip(made: ir.Node) -> Iterator[Ramp]:
    low, top = (scalar(made.inputs[i]) if len(made.inputs) > i else None for i in (1, 2))
    source = made.inputs[0].producer() if made.inputs[0] is not None else None
    if low != 0 or top is None or top <= 0:
        return
    for data in leaves(source, depth=2) if source is not None else ():
        line = polynomial(made.inputs[0], (data,))
        if line is not None and line.get((1,), 0) > 0 and line.get((0,), 0) > 0 and set(line) == {(0,), (1,)}:
            yield Ramp(data, line[(1,)], line[(0,)], top)


def _found(root: ir.Node, data: ir.Value, op_type: str, **attributes: float) -> Found | None:
    shape = dims(data)
    if shape is None or shape != dims(root.outputs[0]):
        return None

    def build(builder: Builder) -> ir.Value:
        return builder.op(op_type, [data], shape, attributes)

    return Found(between(root, (data,)), build)
