"""What import hands on: the canonical float or QDQ model."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

_PIECE = 1 << 20


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
            for piece in _bytes(tensor):
                digest.update(piece)
    return digest.hexdigest()


def _bytes(tensor: ir.TensorProtocol) -> Iterator[bytes | memoryview]:
    """The values' bytes in pieces; texts with their lengths."""
    if tensor.dtype == ir.DataType.STRING:
        yield from (b"%d:%s" % (len(text), text) for text in tensor.numpy().reshape(-1))
        return
    values = tensor.numpy()
    if tensor.dtype.bitwidth < 8 or sys.byteorder != "little":
        yield tensor.tobytes()
        return
    flat = np.ascontiguousarray(values).reshape(-1)
    yield from (flat[at : at + _PIECE].view(np.uint8).data for at in range(0, flat.size, _PIECE))
