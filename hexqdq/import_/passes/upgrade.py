"""Upgrades the model to the lowest opset that the later rooms read."""

from __future__ import annotations

import onnx
import onnx_ir as ir

from hexqdq.errors import ModelError
from hexqdq.import_.passes.names import name_nodes

CANONICAL_OPSET = 17
_IR_VERSION = 8
"""The IR version of opset 17: older ones list initializers among the inputs."""


def upgrade_opset(model: ir.Model) -> int:
    """Converts a model below opset 17 to it; newer models stay as they are. Returns 1 where it converted."""
    opset = model.graph.opset_imports[""]
    if opset >= CANONICAL_OPSET:
        return 0
    model.ir_version = max(model.ir_version, _IR_VERSION)
    proto = ir.to_proto(model)
    try:
        converted = ir.from_proto(onnx.version_converter.convert_version(proto, CANONICAL_OPSET))
    except Exception as error:
        raise ModelError(
            f"opset {opset}",
            f"cannot be upgraded to {CANONICAL_OPSET}: {error}",
            f"export the model with opset {CANONICAL_OPSET} or newer",
        ) from error
    model.graph = converted.graph
    name_nodes(model)
    return 1
