"""Float ops that onnxruntime's optimizers fuse, as the ONNX ops that they stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import onnx_ir as ir

from hexqdq.import_.patterns.rule import STANDS_FOR
from hexqdq.opsets import raise_opset

MICROSOFT = "com.microsoft"
_GELU, _RMS = 20, 23
"""Opsets that have Gelu and RMSNormalization."""


def convert_fused(model: ir.Model) -> int:
    """Rewrites every op of FORMS that the model's opset can be raised for."""
    changes = 0
    for node in list(model.graph):
        form = FORMS.get(node.op_type) if _is_own(node) else None
        if form is not None and raise_opset(model, form[0]):
            writer = _Writer(model.graph, node)
            form[1](writer)
            writer.finish()
            changes += 1
    return changes


def _is_own(node: ir.Node) -> bool:
    """SimplifiedLayerNormalization calls itself one of ONNX's ops."""
    return node.domain == MICROSOFT or (node.domain == "" and node.op_type == "SimplifiedLayerNormalization")


class _Writer:
    """Nodes in place of one; the one that makes output 0 takes over its name."""

    def __init__(self, graph: ir.Graph, node: ir.Node) -> None:
        self.graph, self.node = graph, node
        self.made: list[ir.Node] = []

    def input(self, index: int) -> ir.Value | None:
        """An input of the op, None where it is absent."""
        return self.node.inputs[index] if index < len(self.node.inputs) else None

    def number(self, name: str, default: float) -> float:
        return self.node.attributes[name].as_float() if name in self.node.attributes else default

    def op(
        self,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        attributes: Mapping[str, float | int | str] | None = None,
        output: int | None = None,
    ) -> ir.Value:
        """A node; ``output`` is the position of the op's output that it makes."""
        name = str(self.node.name) if output == 0 else f"{self.node.name}_{op_type.lower()}{len(self.made)}"
        made = ir.node(op_type, list(inputs), dict(attributes or {}), name=name)
        made.meta[STANDS_FOR] = [(str(self.node.name), tuple(str(value.name) for value in self.node.outputs))]
        (result,), first = made.outputs, self.node.outputs[0]
        result.name, result.type, result.shape = f"{name}_output", first.type, first.shape
        self.made.append(made)
        if output is not None:
            self._replace(self.node.outputs[output], result)
        return result

    def _replace(self, old: ir.Value, new: ir.Value) -> None:
        name, old.name = old.name, f"{old.name}_of_fused"
        ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=old.is_graph_output())
        new.name = name

    def finish(self) -> None:
        self.graph.insert_before(self.node, self.made)
        self.graph.remove(self.node, safe=True)


def _with_bias(writer: _Writer, index: int) -> ir.Value | None:
    data, bias = writer.input(0), writer.input(index)
    return data if bias is None else writer.op("Add", [data, bias])


def _gelu(approximate: str) -> Callable[[_Writer], object]:
    """Of the data, to which a bias may be added first."""
    return lambda writer: writer.op("Gelu", [_with_bias(writer, 1)], {"approximate": approximate}, 0)


def _norm(writer: _Writer) -> object:
    axis = writer.node.attributes["axis"].as_int() if "axis" in writer.node.attributes else -1
    attributes = {"axis": axis, "epsilon": writer.number("epsilon", 1e-5)}
    return writer.op("RMSNormalization", [writer.input(0), writer.input(1)], attributes, 0)


def _skip(op_type: str, shift: int | None, bias: int) -> Callable[[_Writer], object]:
    """The norm of a sum; output 3 is the sum."""

    def write(writer: _Writer) -> None:
        wanted = 3 if len(writer.node.outputs) > 3 and writer.node.outputs[3].name else None
        added = writer.input(bias)
        total = writer.op("Add", [writer.input(0), writer.input(1)], output=wanted if added is None else None)
        if added is not None:
            total = writer.op("Add", [total, added], output=wanted)
        inputs = [total, writer.input(2)]
        if shift is not None and writer.input(shift) is not None:
            inputs.append(writer.input(shift))
        writer.op(op_type, inputs, {"axis": -1, "epsilon": writer.number("epsilon", 1e-12)}, 0)

    return write


FORMS: Mapping[str, tuple[int, Callable[[_Writer], object]]] = {
    "Gelu": (_GELU, _gelu("none")),
    "BiasGelu": (_GELU, _gelu("none")),
    "FastGelu": (_GELU, _gelu("tanh")),
    "SimplifiedLayerNormalization": (_RMS, _norm),
    "SkipLayerNormalization": (17, _skip("LayerNormalization", 3, 4)),
    "SkipSimplifiedLayerNormalization": (_RMS, _skip("RMSNormalization", None, 3)),
}
"""By op type: the opset that is needed, and what writes the nodes."""
