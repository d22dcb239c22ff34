"""Raises a model's opset in place, for passes that write ops of a newer one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx_ir as ir

NEWEST = 23
"""The newest opset whose changes since 17 are known here."""
IR_VERSIONS: Mapping[int, int] = {18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11}
"""The IR version that came with each opset."""
REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")
GRID_MODES = {"bilinear": "linear", "bicubic": "cubic"}


def raise_opset(model: ir.Model, version: int) -> bool:
    """Makes the model one of opset ``version`` at least; False, and nothing changed, where an op stands in the way.

    Opsets 18 to 23 gave most ops types only. Those whose nodes look different are rewritten: reductions take
    their axes as an input since 18, Split names its number of outputs, GridSample renames modes at 20.
    """
    present = model.graph.opset_imports.get("", 0)
    if present >= version:
        return True
    if present < 17 or version > NEWEST:
        return False
    nodes = [node for node in ir.traversal.RecursiveGraphIterator(model.graph) if node.domain == ""]
    if any(stays for node in nodes if (stays := _holds_back(node, present, version))):
        return False
    for node in nodes:
        for since, changes, rewrite in _REWRITES:
            if present < since <= version and changes(node):
                rewrite(model.graph, node)
    model.graph.opset_imports[""] = version
    model.ir_version = max(model.ir_version, IR_VERSIONS[version])
    return True


def _holds_back(node: ir.Node, present: int, version: int) -> bool:
    """Whether the node means something else in the newer opset in a way that is not rewritten."""
    return (node.op_type == "DFT" and present < 20 <= version) or (
        node.op_type == "GroupNormalization" and present < 21 <= version
    )


def _takes_axes(node: ir.Node) -> bool:
    return node.op_type.removeprefix("Reduce") in REDUCTIONS and "axes" in node.attributes


def _axes_as_input(graph: ir.Graph, node: ir.Node) -> None:
    axes = np.array(node.attributes.pop("axes").as_ints(), np.int64)
    name, number = f"{node.name}_axes", 2
    while name in graph.initializers:
        name, number = f"{node.name}_axes_{number}", number + 1
    tensor = ir.tensor(axes, name=name)
    value = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(axes.shape), const_value=tensor)
    graph.register_initializer(value)
    node.resize_inputs(2)
    node.replace_input_with(1, value)


def _splits_evenly(node: ir.Node) -> bool:
    return node.op_type == "Split" and (len(node.inputs) < 2 or node.inputs[1] is None)


def _count_outputs(graph: ir.Graph, node: ir.Node) -> None:
    node.attributes["num_outputs"] = ir.AttrInt64("num_outputs", len(node.outputs))


def _has_old_mode(node: ir.Node) -> bool:
    return node.op_type == "GridSample" and ("mode" not in node.attributes or _mode(node) in GRID_MODES)


def _mode(node: ir.Node) -> str:
    return node.attributes["mode"].as_string() if node.op_type == "GridSample" and "mode" in node.attributes else ""


def _rename_mode(graph: ir.Graph, node: ir.Node) -> None:
    node.attributes["mode"] = ir.AttrString("mode", GRID_MODES[_mode(node) or "bilinear"])


_REWRITES: tuple[tuple[int, Callable[[ir.Node], bool], Callable[[ir.Graph, ir.Node], None]], ...] = (
    (18, _takes_axes, _axes_as_input),
    (18, _splits_evenly, _count_outputs),
    (20, _has_old_mode, _rename_mode),
)
