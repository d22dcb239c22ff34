"""Quantizes ONNX models, compiles them for the Hexagon NPU and runs them bit for bit the same on the host."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hexqdq.app.convert import compile_model as compile_model
    from hexqdq.app.convert import quantize_model as quantize_model
    from hexqdq.app.session import InferenceSession as InferenceSession
    from hexqdq.errors import CalibrationError as CalibrationError
    from hexqdq.errors import CompileError as CompileError
    from hexqdq.errors import ContextError as ContextError
    from hexqdq.errors import ExecutorError as ExecutorError
    from hexqdq.errors import HexqdqError as HexqdqError
    from hexqdq.errors import InputError as InputError
    from hexqdq.errors import ModelError as ModelError
    from hexqdq.errors import QuantizationError as QuantizationError
    from hexqdq.errors import RescaleError as RescaleError
    from hexqdq.errors import UnsupportedError as UnsupportedError
    from hexqdq.errors import UsageError as UsageError
    from hexqdq.quantize.recipe import Recipe as Recipe

__all__ = [
    "CalibrationError",
    "CompileError",
    "ContextError",
    "ExecutorError",
    "HexqdqError",
    "InferenceSession",
    "InputError",
    "ModelError",
    "QuantizationError",
    "Recipe",
    "RescaleError",
    "UnsupportedError",
    "UsageError",
    "compile_model",
    "quantize_model",
]

_HOMES = {
    "InferenceSession": "hexqdq.app.session",
    "Recipe": "hexqdq.quantize.recipe",
    "compile_model": "hexqdq.app.convert",
    "quantize_model": "hexqdq.app.convert",
}


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first asked for, so that ``import hexqdq`` costs nothing."""
    if name == "__version__":
        return import_module("importlib.metadata").version("hexqdq")
    if name not in __all__:
        raise AttributeError(f"module 'hexqdq' has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "hexqdq.errors")), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
