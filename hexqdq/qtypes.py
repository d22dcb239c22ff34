"""Integer element types and quantization parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexqdq.errors import QuantizationError


class QType(Enum):
    """An element type: its name in reports, its numpy type and its bits; 4 bits lie in a numpy type of 8."""

    U8 = ("u8", np.uint8, 8)
    S8 = ("s8", np.int8, 8)
    U16 = ("u16", np.uint16, 16)
    S16 = ("s16", np.int16, 16)
    S32 = ("s32", np.int32, 32)
    S64 = ("s64", np.int64, 64)
    S4 = ("s4", np.int8, 4)
    F32 = ("f32", np.float32, 32)

    def __init__(self, label: str, numpy_type: type[np.generic], bits: int) -> None:
        self.label = label
        self.numpy: np.dtype[Any] = np.dtype(numpy_type)
        self.bits = bits

    @property
    def is_integer(self) -> bool:
        return self is not QType.F32

    @property
    def is_signed(self) -> bool:
        return self.numpy.kind != "u"

    @property
    def low(self) -> int:
        """The smallest value of an integer type."""
        return -(1 << (self.bits - 1)) if self.is_signed else 0

    @property
    def high(self) -> int:
        """The largest value of an integer type."""
        return (1 << (self.bits - 1 if self.is_signed else self.bits)) - 1

    @classmethod
    def from_label(cls, label: str) -> QType:
        for member in cls:
            if member.label == label:
                return member
        known = ", ".join(member.label for member in cls)
        raise QuantizationError(f"element type {label!r}", f"unknown; expected one of {known}")

    @classmethod
    def from_numpy(cls, dtype: np.dtype[Any]) -> QType:
        """The type whose elements a numpy type holds, all of them."""
        for member in cls:
            if member.numpy == dtype and member.bits == 8 * dtype.itemsize:
                return member
        known = ", ".join(member.label for member in cls)
        raise QuantizationError(f"element type {dtype}", f"has no integer form here; expected one of {known}")


@dataclass(frozen=True)
class QuantParams:
    """Scale and zero point of a tensor: ``real = (integer - zero_point) * scale``.

    ``scale`` holds float32 values (exact as Python floats), one per tensor or one per index along
    ``axis``; ``zero_point`` has the same length. With a ``block`` the tensor is a matrix, and so many of its
    elements along ``axis`` share a scale: ``scale`` is then the matrix of scales, row by row, of
    ``block_rows`` rows. Raises QuantizationError where they are not a positive finite scale and a zero point
    inside ``dtype``.
    """

    dtype: QType
    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int | None = None
    block: int = 0
    block_rows: int = 0

    def __post_init__(self) -> None:
        if len(self.scale) != len(self.zero_point) or not self.scale:
            raise QuantizationError(
                "quantization parameters",
                f"{len(self.scale)} scales and {len(self.zero_point)} zero points; expected as many of each",
            )
        if self.axis is None and len(self.scale) != 1:
            raise QuantizationError(
                "quantization parameters", f"{len(self.scale)} scales without an axis; expected one scale per tensor"
            )
        if self.block and (self.axis not in (0, 1) or not self.block_rows or len(self.scale) % self.block_rows):
            raise QuantizationError(
                "quantization parameters",
                f"{len(self.scale)} scales of blocks on axis {self.axis}; expected a matrix of {self.block_rows} rows",
            )
        for scale in self.scale:
            if not (math.isfinite(scale) and scale > 0 and float(np.float32(scale)) == scale):
                raise QuantizationError("quantization parameters", f"scale {scale}; expected a positive finite float32")
        for zero_point in self.zero_point:
            if not self.dtype.low <= zero_point <= self.dtype.high:
                raise QuantizationError(
                    "quantization parameters",
                    f"zero point {zero_point}; expected {self.dtype.low}..{self.dtype.high} for {self.dtype.label}",
                )

    @classmethod
    def per_tensor(cls, dtype: QType, scale: float, zero_point: int = 0) -> QuantParams:
        """Parameters of a whole tensor; the scale is rounded to float32."""
        return cls(dtype, (float(np.float32(scale)),), (int(zero_point),))

    @classmethod
    def per_channel(
        cls, dtype: QType, scale: NDArray[np.float32], zero_point: NDArray[np.integer[Any]], axis: int
    ) -> QuantParams:
        """Parameters along ``axis``: float32 scales and zero points of shape [channels]."""
        scales = tuple(float(s) for s in np.asarray(scale, np.float32))
        return cls(dtype, scales, tuple(int(z) for z in zero_point), axis)

    @classmethod
    def per_block(
        cls, dtype: QType, scale: NDArray[np.float32], zero_point: NDArray[np.integer[Any]], axis: int, block: int
    ) -> QuantParams:
        """Parameters of blocks along ``axis`` of a matrix: float32 scales and zero points, a matrix each."""
        scales = tuple(float(s) for s in np.asarray(scale, np.float32).ravel())
        return cls(dtype, scales, tuple(int(z) for z in zero_point.ravel()), axis, block, scale.shape[0])

    @property
    def is_per_tensor(self) -> bool:
        return self.axis is None

    @property
    def is_symmetric(self) -> bool:
        """Whether every zero point is 0."""
        return not any(self.zero_point)

    def scales(self) -> NDArray[np.float32]:
        """The scales as float32 [channels], [1] for a whole tensor, a matrix for blocks."""
        return self._shaped(np.array(self.scale, np.float32))

    def zero_points(self) -> NDArray[Any]:
        """The zero points in the element type, [channels], [1] for a whole tensor, a matrix for blocks."""
        return self._shaped(np.array(self.zero_point, self.dtype.numpy))

    def _shaped(self, values: NDArray[Any]) -> NDArray[Any]:
        return values.reshape(self.block_rows, -1) if self.block else values

    def to_json(self) -> dict[str, Any]:
        """JSON data; blocks, which no unit of a context has, are left out."""
        return {
            "dtype": self.dtype.label,
            "scale": list(self.scale),
            "zero_point": list(self.zero_point),
            "axis": self.axis,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> QuantParams:
        return cls(QType.from_label(data["dtype"]), tuple(data["scale"]), tuple(data["zero_point"]), data["axis"])
