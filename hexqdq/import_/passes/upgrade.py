"""Upgrades the model to the lowest opset that the later rooms read."""

from __future__ import annotations

from collections.abc import Mapping

import onnx
import onnx_ir as ir

from hexqdq.errors import ModelError
from hexqdq.import_.light import light_proto, with_weights
from hexqdq.import_.passes.names import name_nodes

CANONICAL_OPSET = 17
_IR_VERSION = 8
"""The IR version of opset 17: older ones list initializers among the inputs."""
_READ_BYTES = 1 << 16
"""The converter reads the values of constants up to this size: axes, shapes, scales."""
_RESIZE_WITHOUT_MODES = 10
"""Up to this opset Upsample and Resize have one way of placing elements, which is not the later default."""


def upgrade_opset(model: ir.Model) -> int:
    """Converts a model below opset 17 to it; newer models stay as they are. Returns 1 where it converted."""
    opset = model.graph.opset_imports[""]
    if opset >= CANONICAL_OPSET:
        return 0
    model.ir_version = max(model.ir_version, _IR_VERSION)
    resizes = _old_resizes(model.graph) if opset <= _RESIZE_WITHOUT_MODES else {}
    proto = light_proto(model, _READ_BYTES)
    try:
        converted = ir.from_proto(onnx.version_converter.convert_version(proto, CANONICAL_OPSET))
    except Exception as error:
        raise ModelError(
            f"opset {opset}",
            f"cannot be upgraded to {CANONICAL_OPSET}: {error}",
            f"export the model with opset {CANONICAL_OPSET} or newer",
        ) from error
    model.graph = with_weights(converted, model, _READ_BYTES).graph
    _name_modes(model.graph, resizes)
    name_nodes(model)
    return 1


def _old_resizes(graph: ir.Graph) -> dict[str, str]:
    """The nearest mode that old Upsample and Resize nodes imply, by output: floor, or ceil where they shrink."""
    nodes = [node for node in graph if node.op_type in ("Upsample", "Resize") and node.domain == ""]
    return {str(node.outputs[0].name): "ceil" if _shrinks(node) else "floor" for node in nodes}


def _shrinks(node: ir.Node) -> bool:
    scales = node.inputs[1] if len(node.inputs) > 1 else None
    return scales is not None and scales.const_value is not None and bool((scales.const_value.numpy() < 1).any())


def _name_modes(graph: ir.Graph, resizes: Mapping[str, str]) -> None:
    """Says what old nodes implied: the converter leaves it to the new defaults."""
    for node in graph:
        nearest = resizes.get(str(node.outputs[0].name)) if node.op_type == "Resize" else None
        if nearest is not None:
            for name, value in (("coordinate_transformation_mode", "asymmetric"), ("nearest_mode", nearest)):
                node.attributes[name] = ir.AttrString(name, value)
