"""Element types and formats by onnxruntime.quantization's names."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TypeVar

import onnx

from hexqdq.errors import UsageError
from hexqdq.qtypes import QType

Member = TypeVar("Member", bound=Enum)


class QuantType(Enum):
    """An element type of a quantized tensor."""

    QInt8 = 0
    QUInt8 = 1
    QFLOAT8E4M3FN = 2
    QInt16 = 3
    QUInt16 = 4
    QInt4 = 5
    QUInt4 = 6

    def __str__(self) -> str:
        return self.name

    @staticmethod
    def from_string(text: str) -> QuantType:
        """The type of a name; raises UsageError where there is none."""
        return _named(QuantType, text)

    @property
    def tensor_type(self) -> int:
        """The ONNX element type."""
        return int(_ONNX_TYPES[self.name])


class QuantFormat(Enum):
    """How a quantized model is written."""

    QOperator = 0
    QDQ = 1

    def __str__(self) -> str:
        return self.name

    @staticmethod
    def from_string(text: str) -> QuantFormat:
        """The format of a name; raises UsageError where there is none."""
        return _named(QuantFormat, text)


class QuantizationMode(Enum):
    """What onnxruntime replaces ops by; QDQ output needs none of it."""

    IntegerOps = 0
    QLinearOps = 1


_ONNX_TYPES = {
    "QInt8": onnx.TensorProto.INT8,
    "QUInt8": onnx.TensorProto.UINT8,
    "QFLOAT8E4M3FN": onnx.TensorProto.FLOAT8E4M3FN,
    "QInt16": onnx.TensorProto.INT16,
    "QUInt16": onnx.TensorProto.UINT16,
    "QInt4": onnx.TensorProto.INT4,
    "QUInt4": onnx.TensorProto.UINT4,
}
_OURS = {"QInt8": "s8", "QUInt8": "u8", "QInt16": "s16", "QUInt16": "u16", "QInt4": "s4"}


def our_type(argument: str, given: object, valid: Iterable[QType]) -> QType:
    """The hexqdq type of a QuantType, ours or onnxruntime's; raises UsageError where it is not among the valid ones."""
    labels = {member.label: member for member in valid}
    label = _OURS.get(getattr(given, "name", ""))
    if label in labels:
        return labels[label]
    names = [name for name, ours in _OURS.items() if ours in labels]
    raise UsageError(argument, f"is {given}; expected one of {', '.join(names)}", "choose one of them")


def is_named(given: object, member: Enum) -> bool:
    """Whether an enumeration's member, ours or onnxruntime's, is the one meant."""
    return getattr(given, "name", None) == member.name


def _named(kind: type[Member], text: str) -> Member:
    if text not in kind.__members__:
        raise UsageError(
            kind.__name__, f"is {text!r}; expected one of {', '.join(kind.__members__)}", "name one of them"
        )
    return kind[text]
