"""Says what a Pad fills with."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir


def name_pad_fills(model: ir.Model) -> int:
    """Gives every constant Pad its value: some runtimes pad quantized data with integer 0 where none is given."""
    changed = 0
    for node in model.graph:
        data = node.inputs[0] if node.inputs else None
        if node.op_type != "Pad" or node.domain != "" or data is None or data.dtype is None:
            continue
        mode = node.attributes["mode"].as_string() if "mode" in node.attributes else "constant"
        if mode != "constant" or (len(node.inputs) > 2 and node.inputs[2] is not None):
            continue
        tensor = ir.tensor(np.zeros((), data.dtype.numpy()), name=f"{node.name}_fill")
        value = ir.Value(name=tensor.name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(()), const_value=tensor)
        model.graph.register_initializer(value)
        node.resize_inputs(max(len(node.inputs), 3))
        node.replace_input_with(2, value)
        changed += 1
    return changed
