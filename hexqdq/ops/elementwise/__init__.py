"""Ops on elements at one place: sums, products, bounds, and any function of one 8-bit input as a table."""

from __future__ import annotations

from hexqdq.ops.elementwise import clip, product, sums, table
from hexqdq.ops.elementwise.operands import operands

__all__ = ["SPECS", "operands"]

SPECS = (*sums.SPECS, *product.SPECS, *clip.SPECS, *table.SPECS)
