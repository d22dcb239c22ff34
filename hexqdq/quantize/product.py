"""What quantize hands on: the QDQ model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import onnx_ir as ir

from hexqdq.quantize.mixed.record import MixedPrecision
from hexqdq.report import Decision


@dataclass(frozen=True, eq=False)
class QdqModel:
    """A model with QuantizeLinear and DequantizeLinear, the specification of everything later.

    ``origin`` maps its nodes to the source's; ``ranges`` are the calibrated (low, high) by value,
    ``wide_ranges`` those for types of 16 bits; ``decisions`` name the nodes left float and why; ``mixed``
    says which activations have 16 bits and why. All are empty where the model came quantized.
    """

    model: ir.Model
    digest: str
    origin: Mapping[str, tuple[str, ...]]
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    wide_ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    decisions: tuple[Decision, ...] = ()
    mixed: MixedPrecision | None = None
