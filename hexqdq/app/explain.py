"""Where each node of a model would run, and why the others stay on the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from hexqdq.report import Decision, Table, decision_table, reason_table, share
from hexqdq.target import DEFAULT_TARGET, find_target

if TYPE_CHECKING:
    import onnx

Model: TypeAlias = "str | Path | bytes | onnx.ModelProto"

CONTEXT_SUFFIX = ".ctx"
ASSUMED = (
    "The model is float: these decisions assume `{command}`, with ranges from one made-up sample instead of"
    " calibration data."
)
FLOAT_ASSUMPTION = ASSUMED.format(command="hexqdq quantize --preset a8w8")


@dataclass(frozen=True)
class Explanation:
    """One decision per node; ``assumption`` says what was assumed about a float model, else None."""

    decisions: tuple[Decision, ...]
    assumption: str | None = None

    @property
    def npu_mac_share(self) -> float | None:
        """The share of multiply-accumulates that the NPU runs, None where the model has none."""
        counted = share(self.decisions)
        return counted.npu_macs / counted.macs if counted.macs else None

    @property
    def segments(self) -> tuple[tuple[str, ...], ...]:
        """The nodes of each NPU segment, in graph order."""
        count = max((d.segment for d in self.decisions if d.segment is not None), default=-1) + 1
        return tuple(tuple(d.node for d in self.decisions if d.segment == number) for number in range(count))

    def tables(self) -> tuple[Table, ...]:
        """Where each node runs, and the reasons grouped."""
        reasons = reason_table(self.decisions)
        return (decision_table(self.decisions), reasons) if reasons.rows else (decision_table(self.decisions),)

    def to_text(self) -> str:
        """The summary: shares, then the assumption where there is one."""
        return "\n".join(line for line in (str(share(self.decisions)), self.assumption) if line)

    def to_json(self) -> dict[str, Any]:
        nodes = [
            {"name": d.node, "op_type": d.op_type, "segment": d.segment, "reason": d.reason, "macs": d.macs}
            for d in self.decisions
        ]
        segments = [{"segment": number, "nodes": list(names)} for number, names in enumerate(self.segments)]
        return {
            "assumption": self.assumption,
            "nodes": nodes,
            "segments": segments,
            "npu_mac_share": self.npu_mac_share,
        }


def explain(
    model: Model,
    target: str = DEFAULT_TARGET,
    input_shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> Explanation:
    """The decisions on a float or QDQ model, or those stored in a context.

    A float model is quantized with preset ``a8w8`` first, and the explanation says so: which activations
    the default gives 16 bits depends on the samples. Raises UsageError for an unknown target.
    """
    for_target = find_target(target)
    if isinstance(model, str | Path) and Path(model).suffix == CONTEXT_SUFFIX:
        return _stored(Path(model))
    from hexqdq import driver
    from hexqdq.quantize.pipeline import is_quantized
    from hexqdq.quantize.recipe import Recipe

    options = driver.Options(
        input_shapes=input_shapes or {},
        calibration=driver.made_up_feed,
        recipe=Recipe.preset("a8w8"),
        target=for_target,
    )
    products = driver.run_stages(model, options, last="partition").products
    is_float = not is_quantized(products["import"].model)
    return Explanation(products["partition"].decisions, FLOAT_ASSUMPTION if is_float else None)


def _stored(path: Path) -> Explanation:
    from hexqdq.context.file import read

    return Explanation(read(path).decisions)
