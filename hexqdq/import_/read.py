"""Reads an ONNX model from a path, from bytes or from a ModelProto."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx_ir as ir

from hexqdq.errors import ModelError
from hexqdq.import_.check import check_model

_ORT_MARK = b"ORTM"
_COPIED_BYTES = 1 << 28
"""External data up to this size are copied to memory, more are mapped."""
_HINT = "give an ONNX file (.onnx)"

Source = str | Path | bytes | onnx.ModelProto


def read_model(source: Source) -> tuple[ir.Model, str]:
    """The model and the name of its source; raises ModelError where it is no readable ONNX model."""
    if isinstance(source, onnx.ModelProto):
        return _from_proto(source, f"model {source.graph.name or 'given in memory'}", None)
    if isinstance(source, bytes):
        return _from_bytes(source, "model given as bytes", None)
    path = Path(source)
    return _from_bytes(_read_file(path), str(path), path.parent)


def _read_file(path: Path) -> bytes:
    if not path.exists():
        raise ModelError(str(path), "no such file", "check the path")
    if path.is_dir():
        raise ModelError(str(path), "is a folder; expected an ONNX file", _HINT)
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelError(str(path), f"cannot be read: {error.strerror}", "check the permissions") from error


def _from_bytes(data: bytes, name: str, folder: Path | None) -> tuple[ir.Model, str]:
    if data[4:8] == _ORT_MARK:
        raise ModelError(
            name,
            "is in ORT format (onnxruntime's own serialization); expected ONNX",
            "give the .onnx file that it was converted from",
        )
    try:
        proto = onnx.ModelProto.FromString(data)
    except Exception as error:
        raise ModelError(name, "is not an ONNX model: it does not parse as its protobuf", _HINT) from error
    return _from_proto(proto, name, folder)


def _from_proto(proto: onnx.ModelProto, name: str, folder: Path | None) -> tuple[ir.Model, str]:
    if not proto.ir_version or not proto.graph.output:
        raise ModelError(name, "is not an ONNX model: it has no IR version or its graph has no outputs", _HINT)
    if not any(opset.domain in ("", "ai.onnx") for opset in proto.opset_import):
        raise ModelError(name, "imports no ONNX opset", "write the model with an opset_import of the ai.onnx domain")
    try:
        model = ir.from_proto(proto)
    except Exception as error:
        raise ModelError(name, f"is not a valid ONNX graph: {error}", "check it with onnx.checker") from error
    _normalise_domains(model)
    _load_external(model, name, folder)
    check_model(model, name)
    return model, name


def _normalise_domains(model: ir.Model) -> None:
    """The ONNX domain is written ''; 'ai.onnx' is its other spelling."""
    opsets = model.graph.opset_imports
    if "ai.onnx" in opsets:
        opsets.setdefault("", opsets.pop("ai.onnx"))
    for node in model.graph.all_nodes():
        if node.domain == "ai.onnx":
            node.domain = ""


def _load_external(model: ir.Model, name: str, folder: Path | None) -> None:
    """Points external tensors at the model's folder and touches each, so that faults show here."""
    tensors = {v: v.const_value for v in model.graph.initializers.values()}
    external = {value: tensor for value, tensor in tensors.items() if isinstance(tensor, ir.ExternalTensor)}
    for value, tensor in external.items():
        if tensor.dtype == ir.DataType.UNDEFINED:
            raise ModelError(name, f"constant {value.name!r} has no element type", "check it with onnx.checker")
    copied = sum(tensor.nbytes for tensor in external.values()) <= _COPIED_BYTES
    for value, tensor in external.items():
        if folder is None:
            where = f"the data of {value.name!r} lie in the file {str(tensor.location)!r}"
            raise ModelError(name, where, "give the model's path instead")
        tensor.base_dir = folder
        where = f"the external data of {value.name!r} in {folder / str(tensor.location)}"
        value.const_value = _checked(tensor, name, where, copied)


def _checked(tensor: ir.ExternalTensor, name: str, what: str, copied: bool) -> ir.TensorProtocol:
    """The tensor in memory where it is to be copied, else as it lies in its file, mapped."""
    try:
        values = tensor.numpy()
        if not copied:
            return tensor
        return ir.Tensor(values.copy(), dtype=tensor.dtype, name=tensor.name)
    except Exception as error:
        raise ModelError(name, f"cannot read {what}: {error}", "put the data file beside the model") from error
