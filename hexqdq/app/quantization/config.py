"""Settings of a quantization as one object, by onnxruntime.quantization's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from hexqdq.app.quantization.calibrate import CalibrationDataReader, CalibrationMethod
from hexqdq.app.quantization.shape_inference import INFERABLE_BYTES, weight_bytes
from hexqdq.app.quantization.static import quantize_static
from hexqdq.app.quantization.types import QuantFormat, QuantType
from hexqdq.errors import UsageError

NOT_QUANTIZED = ("Cast", "DequantizeLinear", "QuantizeLinear")
CALIBRATION = {
    "symmetric": "CalibTensorRangeSymmetric",
    "moving_average": "CalibMovingAverage",
    "averaging_constant": "CalibMovingAverageConstant",
    "max_intermediate_outputs": "CalibMaxIntermediateOutputs",
    "percentile": "CalibPercentile",
}
"""Keys of ``calibrate_args`` as extra options."""
Excludes = Callable[[onnx.ModelProto, onnx.NodeProto], bool]


@dataclass
class QuantConfig:
    """What quantizations have in common; each field is the argument of ``quantize_static``."""

    activation_type: QuantType = QuantType.QUInt8
    weight_type: QuantType = QuantType.QInt8
    op_types_to_quantize: Sequence[str] | None = None
    nodes_to_quantize: Sequence[str] | None = None
    nodes_to_exclude: Sequence[str] | None = None
    per_channel: bool = False
    reduce_range: bool = False
    use_external_data_format: bool = False


class StaticQuantConfig(QuantConfig):
    """The arguments of ``quantize_static`` besides the paths."""

    def __init__(
        self,
        calibration_data_reader: CalibrationDataReader,
        calibrate_method: CalibrationMethod = CalibrationMethod.MinMax,
        quant_format: QuantFormat = QuantFormat.QDQ,
        activation_type: QuantType = QuantType.QInt8,
        weight_type: QuantType = QuantType.QInt8,
        op_types_to_quantize: Sequence[str] | None = None,
        nodes_to_quantize: Sequence[str] | None = None,
        nodes_to_exclude: Sequence[str] | None = None,
        per_channel: bool = False,
        reduce_range: bool = False,
        use_external_data_format: bool = False,
        calibration_providers: Sequence[str] | None = None,
        extra_options: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(
            activation_type,
            weight_type,
            op_types_to_quantize,
            nodes_to_quantize,
            nodes_to_exclude,
            per_channel,
            reduce_range,
            use_external_data_format,
        )
        self.calibration_data_reader = calibration_data_reader
        self.calibrate_method = calibrate_method
        self.quant_format = quant_format
        self.calibration_providers = calibration_providers
        self.extra_options = extra_options or {}


def quantize(model_input: str | Path | onnx.ModelProto, model_output: str | Path, quant_config: QuantConfig) -> None:
    """``quantize_static`` with the settings; raises UsageError where they are not static ones."""
    if not isinstance(quant_config, StaticQuantConfig):
        found = f"is a {type(quant_config).__name__}; expected StaticQuantConfig"
        raise UsageError("quant_config", found, "give one, with calibration data")
    quantize_static(
        model_input,
        model_output,
        quant_config.calibration_data_reader,
        calibrate_method=quant_config.calibrate_method,
        quant_format=quant_config.quant_format,
        activation_type=quant_config.activation_type,
        weight_type=quant_config.weight_type,
        op_types_to_quantize=quant_config.op_types_to_quantize,
        nodes_to_quantize=quant_config.nodes_to_quantize,
        nodes_to_exclude=quant_config.nodes_to_exclude,
        per_channel=quant_config.per_channel,
        reduce_range=quant_config.reduce_range,
        use_external_data_format=quant_config.use_external_data_format,
        calibration_providers=quant_config.calibration_providers,
        extra_options=quant_config.extra_options,
    )


def get_qdq_config(
    model_input: str | Path | onnx.ModelProto,
    calibration_data_reader: CalibrationDataReader,
    calibrate_method: CalibrationMethod = CalibrationMethod.MinMax,
    calibrate_args: Mapping[str, Any] | None = None,
    activation_type: QuantType = QuantType.QUInt8,
    weight_type: QuantType = QuantType.QInt8,
    activation_symmetric: bool = False,
    weight_symmetric: bool | None = None,
    per_channel: bool = False,
    reduce_range: bool = False,
    keep_removable_activations: bool = False,
    min_real_range: float | None = None,
    tensor_quant_overrides: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    calibration_providers: Sequence[str] | None = None,
    op_types_to_quantize: Sequence[str] | None = None,
    nodes_to_exclude: Sequence[str] | Excludes | None = None,
    extra_options: Mapping[str, Any] | None = None,
) -> StaticQuantConfig:
    """Settings that quantize the whole model; ``nodes_to_exclude`` may be a function of model and node."""
    model = (
        model_input if isinstance(model_input, onnx.ModelProto) else onnx.load(model_input, load_external_data=False)
    )
    options: dict[str, Any] = {
        "MinimumRealRange": min_real_range,
        "QDQKeepRemovableActivations": keep_removable_activations,
        "ActivationSymmetric": activation_symmetric,
        "WeightSymmetric": weight_symmetric,
        "ForceQuantizeNoInputCheck": True,
        "TensorQuantOverrides": dict(tensor_quant_overrides or {}),
    }
    for name, value in (calibrate_args or {}).items():
        if name not in CALIBRATION:
            known = f"expected one of {', '.join(CALIBRATION)}"
            raise UsageError("calibrate_args", f"holds {name!r}; {known}", "correct or remove it")
        options[CALIBRATION[name]] = value
    return StaticQuantConfig(
        calibration_data_reader,
        calibrate_method,
        activation_type=activation_type,
        weight_type=weight_type,
        op_types_to_quantize=op_types_to_quantize or _op_types(model),
        nodes_to_exclude=_excluded(model, nodes_to_exclude),
        per_channel=per_channel,
        reduce_range=reduce_range,
        use_external_data_format=_is_large(model),
        calibration_providers=calibration_providers,
        extra_options=options | dict(extra_options or {}),
    )


def _op_types(model: onnx.ModelProto) -> list[str]:
    return sorted({node.op_type for node in model.graph.node} - set(NOT_QUANTIZED))


def _excluded(model: onnx.ModelProto, nodes: Sequence[str] | Excludes | None) -> list[str]:
    if callable(nodes):
        return [node.name for node in model.graph.node if nodes(model, node)]
    return list(nodes or ())


def _is_large(model: onnx.ModelProto) -> bool:
    """Whether the weights lie in a file of their own, or must."""
    external = any(onnx.external_data_helper.uses_external_data(tensor) for tensor in model.graph.initializer)
    return external or weight_bytes(model) >= INFERABLE_BYTES
