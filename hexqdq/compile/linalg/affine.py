"""Affine maps as offsets and strides."""

from __future__ import annotations

from mlir.ir import AffineAddExpr, AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap, AffineMulExpr

from hexqdq.compile.linalg.nest import Access, dense_strides
from hexqdq.errors import CompileError


def linear(expression: AffineExpr, loops: int) -> tuple[int, list[int]]:
    """A linear expression as its constant and one factor per loop; raises CompileError for others."""
    if isinstance(expression, AffineConstantExpr):
        return AffineConstantExpr(expression).value, [0] * loops
    if isinstance(expression, AffineDimExpr):
        position = AffineDimExpr(expression).position
        return 0, [int(loop == position) for loop in range(loops)]
    if isinstance(expression, AffineAddExpr):
        binary = AffineAddExpr(expression)
        left, right = linear(binary.lhs, loops), linear(binary.rhs, loops)
        return left[0] + right[0], [a + b for a, b in zip(left[1], right[1], strict=True)]
    if isinstance(expression, AffineMulExpr):
        product = AffineMulExpr(expression)
        left, right = linear(product.lhs, loops), linear(product.rhs, loops)
        (factor, _), (offset, strides) = (left, right) if not any(left[1]) else (right, left)
        return factor * offset, [factor * stride for stride in strides]
    raise CompileError("linalg map", f"{expression} is not linear in the loops")


def access(buffer: str, shape: tuple[int, ...], affine_map: AffineMap) -> Access:
    """The map's element of a dense tensor of ``shape``."""
    loops = affine_map.n_dims
    offset, strides = 0, [0] * loops
    for stride, expression in zip(dense_strides(shape), affine_map.results, strict=True):
        constant, factors = linear(expression, loops)
        offset += stride * constant
        strides = [total + stride * factor for total, factor in zip(strides, factors, strict=True)]
    return Access(buffer, tuple(strides), offset)


def extents(maps: list[AffineMap], shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The loops' extents, from the dimensions that maps read directly."""
    found: dict[int, int] = {}
    for affine_map, shape in zip(maps, shapes, strict=True):
        for size, expression in zip(shape, affine_map.results, strict=True):
            if isinstance(expression, AffineDimExpr):
                found.setdefault(AffineDimExpr(expression).position, size)
    return tuple(found[loop] for loop in range(maps[0].n_dims))
