"""What import hands on: the canonical float or QDQ model."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir


@dataclass(frozen=True, eq=False)
class ImportedModel:
    """A model of static shapes whose nodes all have names and whose values all have types.

    ``source`` says where it came from; ``digest`` is the SHA-256 of its content; ``origin`` maps
    each node to the nodes of the source that it stands for (empty where the source has none).
    """

    model: ir.Model
    source: str
    digest: str
    origin: Mapping[str, tuple[str, ...]]


def model_digest(model: ir.Model) -> str:
    """SHA-256 over opsets, inputs, outputs, nodes and initializers; documentation does not count."""
    graph, digest = model.graph, hashlib.sha256()
    digest.update(repr(sorted(model.opset_imports.items())).encode())
    for value in (*graph.inputs, *graph.outputs):
        digest.update(f"{value.name}|{value.dtype}|{value.shape}\n".encode())
    for node in graph:
        digest.update(ir.serde.serialize_node(node).SerializeToString(deterministic=True))
    for name in sorted(graph.initializers):
        tensor = graph.initializers[name].const_value
        if tensor is not None:
            digest.update(f"{name}|{tensor.dtype}|{tensor.shape}\n".encode())
            digest.update(_bytes(tensor))
    return digest.hexdigest()


def _bytes(tensor: ir.TensorProtocol) -> bytes:
    """The values' bytes; texts with their lengths."""
    if tensor.dtype == ir.DataType.STRING:
        return b"".join(b"%d:%s" % (len(text), text) for text in tensor.numpy().reshape(-1))
    return tensor.tobytes()
