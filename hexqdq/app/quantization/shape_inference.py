"""Preparing a model for quantization, by onnxruntime.quantization's name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx

from hexqdq.errors import UsageError
from hexqdq.import_.read import read_model

INFERABLE_BYTES = onnx.checker.MAXIMUM_PROTOBUF - (1 << 24)
"""Weights that leave room for the graph below protobuf's limit."""


def quant_pre_process(
    input_model: str | Path | onnx.ModelProto | None = None,
    output_model_path: str | Path | None = None,
    skip_optimization: bool = False,
    skip_onnx_shape: bool = False,
    skip_symbolic_shape: bool = False,
    auto_merge: bool = False,
    int_max: int = 2**31 - 1,
    guess_output_rank: bool = False,
    verbose: int = 0,
    save_as_external_data: bool = False,
    all_tensors_to_one_file: bool = False,
    external_data_location: str | None = None,
    external_data_size_threshold: int = 1024,
    **deprecated: Any,
) -> None:
    """Writes the model with inferred shapes; names of nodes and tensors stay.

    There is no need for it: ``quantize_static`` brings a model into canonical form itself, at the shapes
    of the samples, with BatchNorm folded and decomposed ops recognised. ``skip_optimization`` and the
    arguments of symbolic inference have nothing to change here.
    """
    source = input_model if input_model is not None else deprecated.pop("input_model_path", None)
    if source is None or output_model_path is None:
        missing = "input_model" if source is None else "output_model_path"
        raise UsageError(missing, "is missing", "give the model and where to write it")
    if deprecated:
        raise UsageError(min(deprecated), "is no argument of quant_pre_process", "leave it out")
    read_model(source)
    model = source if isinstance(source, onnx.ModelProto) else onnx.load(source)
    if not skip_onnx_shape:
        model = _inferred(model)
    onnx.save_model(
        model,
        output_model_path,
        save_as_external_data=save_as_external_data,
        all_tensors_to_one_file=all_tensors_to_one_file,
        location=external_data_location,
        size_threshold=external_data_size_threshold,
    )


def weight_bytes(model: onnx.ModelProto) -> int:
    """What the weights in the model take; a whole one of 2 GB cannot tell its size."""
    return sum(tensor.ByteSize() for tensor in model.graph.initializer)


def _inferred(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with inferred shapes; one of 2 GB and more, which inference cannot take in memory, as it is."""
    return onnx.shape_inference.infer_shapes(model) if weight_bytes(model) < INFERABLE_BYTES else model
