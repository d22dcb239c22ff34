"""QdqModel -> PartitionedModel."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from hexqdq.errors import CompileError, ModelError
from hexqdq.ops.unit import Tensor
from hexqdq.partition.cut import Cut
from hexqdq.partition.decide import decide
from hexqdq.partition.extract import parts
from hexqdq.partition.product import NpuPart, PartitionedModel
from hexqdq.partition.support import find_support
from hexqdq.partition.verify import problems, writes
from hexqdq.partition.view import GraphView
from hexqdq.quantize.product import QdqModel
from hexqdq.target import Target


def partition(qdq: QdqModel, target: Target) -> PartitionedModel:
    """The model cut into NPU segments and CPU parts; every node has its segment or its reason.

    Raises ModelError where an input or output has a type that sessions do not carry.
    """
    view = GraphView(qdq.model)
    cut = Cut(view, find_support(view, target))
    made = parts(cut)
    delivered = {name for part in made if isinstance(part, NpuPart) for name in writes(part)}
    result = PartitionedModel(
        digest=qdq.digest,
        inputs=_tensors(view, qdq.model.graph.inputs, "input"),
        outputs=_tensors(view, qdq.model.graph.outputs, "output"),
        parts=made,
        decisions=decide(cut, delivered),
        origin=qdq.origin,
    )
    for problem in problems(result):
        raise CompileError("partition", problem, "report the model")
    return result


def _tensors(view: GraphView, values: Iterable[ir.Value], kind: str) -> tuple[Tensor, ...]:
    tensors = []
    for value in values:
        tensor = view.tensor(value)
        if tensor is None:
            raise ModelError(
                f"{kind} {value.name!r}",
                f"has element type {value.dtype}; expected float32 or an integer type",
                "cast it inside the model",
            )
        tensors.append(tensor)
    return tuple(tensors)
