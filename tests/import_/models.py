"""Small models to import."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
from numpy.typing import NDArray
from onnx import numpy_helper


def parse(text: str, opset: int = 17, **constants: NDArray[Any]) -> onnx.ModelProto:
    """A model from ONNX's text form with named constants."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}')
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    return model


def relu_model() -> onnx.ModelProto:
    return parse("m (float[1,4] x) => (float[1,4] y) { y = Relu(x) }")


def weighted_model() -> onnx.ModelProto:
    weights = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    return parse("m (float[2,4] x) => (float[2,3] y) { h = MatMul(x, w) y = Relu(h) }", w=weights)


def outputs(model: onnx.ModelProto | ir.Model, feeds: dict[str, NDArray[Any]]) -> list[NDArray[Any]]:
    """What onnxruntime computes, without its own rewriting."""
    proto = model if isinstance(model, onnx.ModelProto) else ir.to_proto(model)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    known = {value.name for value in session.get_inputs()}
    return list(session.run(None, {name: value for name, value in feeds.items() if name in known}))
