"""A value as a polynomial of other values: one meaning for the many ways in which exporters write a formula."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import onnx_ir as ir

from hexqdq.import_.patterns.reading import close, scalar

Polynomial = dict[tuple[int, ...], float]
"""Coefficients by the exponent of every symbol."""

HIGHEST = 4
"""Degree beyond which nothing is matched."""


def polynomial(value: ir.Value | None, symbols: Sequence[ir.Value]) -> Polynomial | None:
    """The value in terms of the symbols; None where it is made of anything else."""
    if value is None:
        return None
    if value in symbols:
        return {tuple(int(value is symbol) for symbol in symbols): 1.0}
    constant = scalar(value)
    if constant is not None:
        return {(0,) * len(symbols): constant}
    node = value.producer()
    return None if node is None or node.domain != "" else _of_node(node, symbols)


def _of_node(node: ir.Node, symbols: Sequence[ir.Value]) -> Polynomial | None:
    if node.op_type not in ("Add", "Sub", "Mul", "Div", "Neg", "Pow"):
        return None
    parts = [polynomial(value, symbols) for value in node.inputs]
    if any(part is None for part in parts):
        return None
    known = [part for part in parts if part is not None]
    match node.op_type:
        case "Add":
            return _sum(known[0], known[1], 1.0)
        case "Sub":
            return _sum(known[0], known[1], -1.0)
        case "Neg":
            return _sum({}, known[0], -1.0)
        case "Mul":
            return _product(known[0], known[1])
        case "Div":
            return _quotient(known[0], scalar(node.inputs[1]))
    return _power(known[0], scalar(node.inputs[1]))


def _sum(left: Polynomial, right: Polynomial, sign: float) -> Polynomial:
    result = defaultdict(float, left)
    for exponents, factor in right.items():
        result[exponents] += sign * factor
    return dict(result)


def _product(left: Polynomial, right: Polynomial) -> Polynomial | None:
    result: Polynomial = defaultdict(float)
    for one, factor in left.items():
        for other, second in right.items():
            result[tuple(a + b for a, b in zip(one, other, strict=True))] += factor * second
    return dict(result) if all(sum(exponents) <= HIGHEST for exponents in result) else None


def _quotient(value: Polynomial, divisor: float | None) -> Polynomial | None:
    return {exponents: factor / divisor for exponents, factor in value.items()} if divisor else None


def _power(value: Polynomial, exponent: float | None) -> Polynomial | None:
    if exponent is None or exponent not in range(1, HIGHEST + 1):
        return None
    result: Polynomial | None = value
    for _ in range(int(exponent) - 1):
        result = _product(result, value) if result is not None else None
    return result


def same(found: Polynomial | None, wanted: Mapping[tuple[int, ...], float]) -> bool:
    """Whether two polynomials are equal but for the rounding of their coefficients."""
    if found is None:
        return False
    significant = {exponents for exponents, factor in found.items() if factor}
    return significant == set(wanted) and all(close(found[exponents], factor) for exponents, factor in wanted.items())


def leaves(root: ir.Node, depth: int = 6) -> list[ir.Value]:
    """Values from which arithmetic computes the root's output, nearest first."""
    found: dict[ir.Value, None] = {}
    level = [root]
    for _ in range(depth):
        values = [value for node in level for value in node.inputs if value is not None and not value.is_initializer()]
        found |= dict.fromkeys(values)
        makers = (value.producer() for value in values)
        level = [n for n in makers if n is not None and n.op_type in ("Add", "Sub", "Mul", "Div", "Neg", "Pow")]
    return list(found)
