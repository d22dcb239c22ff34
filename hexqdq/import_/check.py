"""What a model must hold before any pass touches it; each check names the node or constant at fault."""

from __future__ import annotations

import onnx
import onnx_ir as ir

from hexqdq.errors import ModelError
from hexqdq.import_.light import light_proto

DAMAGED = "the file is damaged or was written wrongly; check it with onnx.checker"


def check_model(model: ir.Model, name: str) -> None:
    """Every check below, in an order in which later ones may rely on earlier ones."""
    check_opsets(model, name)
    check_tensors(model, name)
    check_texts(model, name)
    for node in model.graph.all_nodes():
        check_arity(node, model.graph.opset_imports[""], name)


def check_opsets(model: ir.Model, name: str) -> None:
    """Every domain that nodes are of is imported, and ONNX's own in a version that is known here."""
    opsets = model.graph.opset_imports
    newest = onnx.defs.onnx_opset_version()
    if opsets[""] > newest:
        problem = f"imports ONNX opset {opsets['']}; expected at most {newest}, the newest of onnx {onnx.__version__}"
        raise ModelError(name, problem, "export the model with an older opset, or install a newer onnx")
    for node in model.graph.all_nodes():
        if node.domain not in opsets and (node.domain, node.op_type, node.overload) not in model.functions:
            problem = f"node {node.name!r} ({node.op_type}) is of domain {node.domain!r}, which is not imported"
            raise ModelError(
                name, f"{problem}; expected one of {', '.join(map(repr, opsets))}", "mend its opset_import"
            )


def check_tensors(model: ir.Model, name: str) -> None:
    """Every constant holds as many bytes as its type and shape say."""
    tensors = [value.const_value for value in model.graph.initializers.values()]
    for node in model.graph.all_nodes():
        tensors += [a.as_tensor() for a in node.attributes.values() if a.type == ir.AttributeType.TENSOR]
    for tensor in tensors:
        if tensor is None or isinstance(tensor, ir.ExternalTensor):
            continue
        what = f"constant {tensor.name!r} holds other bytes than {tensor.dtype.name} of {list(tensor.shape)} takes"
        try:
            fits = tensor.numpy().shape == tuple(tensor.shape.numpy())
        except Exception as error:
            raise ModelError(name, f"{what}: {error}", DAMAGED) from error
        if not fits:
            raise ModelError(name, f"{what}; expected {tensor.nbytes}", DAMAGED)


def check_arity(node: ir.Node, opset: int, name: str) -> None:
    """A node has the inputs and outputs that its op asks for."""
    subject = f"node {node.name!r} ({node.op_type})"
    if not node.outputs:
        raise ModelError(name, f"{subject} has no outputs; expected at least one", DAMAGED)
    if node.domain != "" or not onnx.defs.has(node.op_type, ""):
        return
    try:
        schema = onnx.defs.get_schema(node.op_type, opset, "")
    except onnx.defs.SchemaError as error:
        raise ModelError(name, f"{subject} is not in ONNX opset {opset}", DAMAGED) from error
    for side, values, least, most in (
        ("inputs", node.inputs, schema.min_input, schema.max_input),
        ("outputs", node.outputs, schema.min_output, schema.max_output),
    ):
        if not least <= len(values) <= most:
            raise ModelError(name, f"{subject} has {len(values)} {side}; expected {least} to {most}", DAMAGED)
    absent = [formal.name for formal, value in zip(schema.inputs, node.inputs, strict=False) if _lacks(formal, value)]
    if absent:
        raise ModelError(name, f"{subject} has no input {absent[0]!r}; expected it", DAMAGED)


def _lacks(formal: onnx.defs.OpSchema.FormalParameter, value: ir.Value | None) -> bool:
    return value is None and formal.option == onnx.defs.OpSchema.FormalParameterOption.Single


def check_texts(model: ir.Model, name: str) -> None:
    """Names and attributes can be written again: they are UTF-8, and their types are ONNX's."""
    try:
        light_proto(model, most_bytes=0)
    except Exception as error:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        raise ModelError(name, f"has a name or an attribute that is not ONNX's: {cause}", DAMAGED) from error
