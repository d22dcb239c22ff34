"""onnxruntime.quantization's names and meaning for QDQ output: moving over is one import.

What hexqdq does not do is refused by name, with what to use instead.
"""

from __future__ import annotations

from typing import Any, NoReturn

from hexqdq.app.quantization.calibrate import CalibrationDataReader, CalibrationMethod
from hexqdq.app.quantization.config import QuantConfig, StaticQuantConfig, get_qdq_config, quantize
from hexqdq.app.quantization.shape_inference import quant_pre_process
from hexqdq.app.quantization.static import quantize_static
from hexqdq.app.quantization.types import QuantFormat, QuantizationMode, QuantType
from hexqdq.errors import UnsupportedError

__all__ = [
    "CalibrationDataReader",
    "CalibrationMethod",
    "QuantConfig",
    "QuantFormat",
    "QuantType",
    "QuantizationMode",
    "StaticQuantConfig",
    "get_qdq_config",
    "quant_pre_process",
    "quantize",
    "quantize_dynamic",
    "quantize_static",
]

STATIC = "use quantize_static with calibration data"
CALIBRATORS = "use quantize_static with calibrate_method, or hexqdq.Recipe(method=...)"
REFUSED = {
    "CalibraterBase": CALIBRATORS,
    "CudaQuantizer": STATIC,
    "DynamicQuantConfig": STATIC,
    "MinMaxCalibrater": CALIBRATORS,
    "QDQQuantizer": STATIC,
    "TensorData": "ranges are a dictionary of (low, high) by tensor: see hexqdq quantize --ranges",
    "TensorsData": "ranges are a dictionary of (low, high) by tensor: see hexqdq quantize --ranges",
    "create_calibrator": CALIBRATORS,
    "load_tensors_data": "give calibration_cache_path to quantize_static",
    "save_tensors_data": "give calibration_cache_path to quantize_static",
    "write_calibration_table": "give calibration_cache_path to quantize_static",
}
"""Other names of onnxruntime.quantization, and what stands in for them."""


def quantize_dynamic(*_: Any, **__: Any) -> NoReturn:
    """Raises UnsupportedError: an NPU computes with scales that are known beforehand."""
    raise UnsupportedError("quantize_dynamic", "is not supported: scales must be known before the model runs", STATIC)


def __getattr__(name: str) -> Any:
    if name in REFUSED:
        raise UnsupportedError(f"hexqdq.app.quantization.{name}", "is not supported", REFUSED[name])
    raise AttributeError(f"module 'hexqdq.app.quantization' has no attribute {name!r}")
