"""Which nodes of a QDQ model break the rules of another NPU back end, and which rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import onnx_ir as ir

from hexqdq.app.explain import ASSUMED, Model
from hexqdq.app.rules import qnn
from hexqdq.app.rules.group import NodeGroup, encoding_of, groups, is_dequantize, is_quantize
from hexqdq.app.rules.rule import Rule
from hexqdq.errors import UsageError
from hexqdq.report import Table

RULE_SETS = ("qnn",)


@dataclass(frozen=True)
class Breach:
    """A node that breaks a rule, and what was found there."""

    node: str
    op_type: str
    rule: str
    found: str


@dataclass(frozen=True)
class Verdict:
    """``breaches`` in the graph's order, of ``units`` node groups; ``assumption`` as an Explanation has it."""

    rules: str
    units: int
    breaches: tuple[Breach, ...]
    assumption: str | None = None

    @property
    def broken(self) -> int:
        """How many nodes break a rule."""
        return len({breach.node for breach in self.breaches})

    def tables(self) -> tuple[Table, ...]:
        """The breaches, and the rules that they break."""
        if not self.breaches:
            return ()
        rows = tuple((b.node, b.op_type, b.rule, b.found) for b in self.breaches)
        listed = Table(f"What breaks the rules {self.rules}", ("node", "op", "rule", "found"), rows)
        return (listed, Table("Rules that are broken", ("rule", "nodes", "ops"), tuple(self._by_rule())))

    def _by_rule(self) -> Iterator[tuple[str, int, str]]:
        for rule in dict.fromkeys(breach.rule for breach in self.breaches):
            found = [breach for breach in self.breaches if breach.rule == rule]
            yield rule, len(found), ", ".join(sorted({breach.op_type for breach in found}))

    def to_text(self) -> str:
        said = f"{self.broken} of {self.units} node groups break the rules {self.rules}"
        return "\n".join(line for line in (said, self.assumption) if line)

    def to_json(self) -> dict[str, Any]:
        return {
            "rules": self.rules,
            "units": self.units,
            "broken": self.broken,
            "assumption": self.assumption,
            "breaches": [asdict(breach) for breach in self.breaches],
        }


def judge(model: Model, rules: str, input_shapes: Mapping[str, tuple[int, ...]] | None = None) -> Verdict:
    """Judges a QDQ model, or a float one as the default recipe would quantize it, which the verdict says.

    Raises UsageError for a set of rules that there is not.
    """
    if rules not in RULE_SETS:
        raise UsageError("--rules", f"is {rules!r}; expected one of {', '.join(RULE_SETS)}", "name one of them")
    from hexqdq import driver
    from hexqdq.quantize.pipeline import is_quantized

    options = driver.Options(input_shapes=input_shapes or {}, calibration=driver.made_up_feed)
    products = driver.run_stages(model, options, last="quantize").products
    is_float = not is_quantized(products["import"].model)
    return judge_graph(
        products["quantize"].model.graph, rules, ASSUMED.format(command="hexqdq quantize") if is_float else None
    )


def judge_graph(graph: ir.Graph, rules: str, assumption: str | None = None) -> Verdict:
    """Judges a graph as it is."""
    listed = [group for group in groups(graph) if group.is_about_floats or _holds_graphs(group)]
    found = [breach for group in listed for breach in _breaches(group)]
    return Verdict(rules, len(listed), (*found, *_lone_channels(graph)), assumption)


def rules_of(op_type: str) -> tuple[Rule, ...] | None:
    """What an op is asked for; None where it is in no kind."""
    for kind in qnn.KINDS:
        if op_type in kind.ops:
            return (*kind.rules, *qnn.OF_OP.get(op_type, ()), *qnn.OF_ALL)
    return None


def _breaches(group: NodeGroup) -> Iterator[Breach]:
    name, op_type = str(group.node.name), group.node.op_type
    rules = rules_of(op_type) if group.node.domain == "" else None
    if rules is None and not _holds_graphs(group):
        yield Breach(name, op_type, qnn.KNOWN_OPS, f"{group.node.domain or 'onnx'} {op_type}")
    for rule in rules or qnn.OF_ANY:
        found = rule.test(group)
        if found is not None:
            yield Breach(name, op_type, rule.sentence, found)


def _lone_channels(graph: ir.Graph) -> Iterator[Breach]:
    """Q and DQ per channel that no op with weights reads."""
    for node in graph:
        if not (is_quantize(node) or is_dequantize(node)):
            continue
        encoding = encoding_of(node)
        if encoding is None or encoding.axis is None:
            continue
        readers = [use.node.op_type for output in node.outputs for use in output.uses()]
        if is_quantize(node) or not set(readers) <= set(qnn.WITH_WEIGHTS) or not readers:
            read_by = ", ".join(dict.fromkeys(readers)) or "nothing"
            yield Breach(str(node.name), node.op_type, qnn.LONE_CHANNELS, f"{encoding}, read by {read_by}")


def _holds_graphs(group: NodeGroup) -> bool:
    return any(found.type == ir.AttributeType.GRAPH for found in group.node.attributes.values())
