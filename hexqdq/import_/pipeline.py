"""Path, bytes or proto -> ImportedModel."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import onnx_ir as ir

from hexqdq.errors import ModelError
from hexqdq.import_.contrib.fused import convert_fused
from hexqdq.import_.contrib.qoperators import convert_qoperators
from hexqdq.import_.passes.affine import fold_affine
from hexqdq.import_.passes.constants import lift_constants, remove_dead
from hexqdq.import_.passes.fills import name_pad_fills
from hexqdq.import_.passes.fold import fold_constants
from hexqdq.import_.passes.forward import fold_forward
from hexqdq.import_.passes.identities import name_outputs, remove_identities
from hexqdq.import_.passes.infer import infer_shapes
from hexqdq.import_.passes.inline import inline_functions, take_known_branches
from hexqdq.import_.passes.names import name_nodes
from hexqdq.import_.passes.pads import resolve_auto_pad
from hexqdq.import_.passes.transposed import rewrite_transposed
from hexqdq.import_.passes.upgrade import upgrade_opset
from hexqdq.import_.patterns import join_parts
from hexqdq.import_.patterns.rule import STANDS_FOR
from hexqdq.import_.product import ImportedModel, model_digest
from hexqdq.import_.read import Source, read_model
from hexqdq.import_.shapes import fix_input_shapes
from hexqdq.import_.verify import unknown_values
from hexqdq.passes import Pass, run_passes, well_formed


def _fold_until_stable(model: ir.Model) -> int:
    """Folding shows inference new shapes and conditions their branches, and the other way round."""
    changes = infer_shapes(model)
    while folded := fold_constants(model) + take_known_branches(model):
        changes += folded + infer_shapes(model)
    return changes


STRUCTURE = (
    Pass("names", "first: everything later speaks of nodes by name", name_nodes),
    Pass("inline", "functions hide nodes from every later pass", inline_functions),
    Pass("inlined_names", "bodies bring nodes of their own", name_nodes),
)
CANONICAL = (
    Pass("upgrade", "before anything reads attributes that older opsets spell otherwise", upgrade_opset),
    Pass("constants", "the upgrade writes Constant nodes; folding and inference read initializers", lift_constants),
    Pass("qoperators", "before inference, which does not know the runtime's own ones", convert_qoperators),
    Pass("fused", "before inference for the same reason", convert_fused),
    Pass("fold", "shapes become static where they are computed", _fold_until_stable),
    Pass("identities", "after inference, which tells the types of Casts", remove_identities),
    Pass("pads", "needs static shapes", resolve_auto_pad),
    Pass("transposed", "after pads; before affine, which scales the weights of Convs by rows", rewrite_transposed),
    Pass("parts", "needs static shapes; before affine, which would take the last part for its own", join_parts),
    Pass("affine", "after identities, which may stand between a contraction and its normalization", fold_affine),
    Pass("forward", "what affine could not fold backwards", fold_forward),
    Pass("fills", "needs types", name_pad_fills),
    Pass("outputs", "after folding, which may leave a constant as an output", name_outputs),
    Pass("dead", "what folding left behind", remove_dead),
    Pass("node_names", "the upgrade may have made nameless nodes", name_nodes),
)


def import_model(
    source: Source, input_shapes: Mapping[str, tuple[int, ...]] | None = None, dump: Path | None = None
) -> ImportedModel:
    """The canonical form of a model; raises ModelError where it cannot be read or made static."""
    model, name = read_model(source)
    _require_well_formed(model, name)
    run_passes(model, STRUCTURE)
    origin = _Origin(model)
    lift_constants(model)  # an initializer that is listed as an input needs no shape from the user
    fix_input_shapes(model, dict(input_shapes or {}))
    run_passes(model, CANONICAL, dump=dump)
    _require_static(model, name)
    return ImportedModel(model, name, model_digest(model), origin.of(model))


def _require_well_formed(model: ir.Model, name: str) -> None:
    """Faults of the source are the source's: they are told before any pass runs."""
    name_nodes(model)
    if any(well_formed(model)):
        _sort(model, name)
    for problem in well_formed(model):
        raise ModelError(name, f"is not a valid ONNX graph: {problem}", "check it with onnx.checker")


def _sort(model: ir.Model, name: str) -> None:
    try:
        model.graph.sort()
    except ValueError as error:
        raise ModelError(name, f"is not a valid ONNX graph: {error}", "check it with onnx.checker") from error


def _require_static(model: ir.Model, name: str) -> None:
    for problem in unknown_values(model):
        raise ModelError(name, problem, "simplify the part of the model that computes it, or replace the op")


class _Origin:
    """The source's nodes by name and by output, taken before the model changes."""

    def __init__(self, model: ir.Model) -> None:
        self._names = {str(node.name) for node in model.graph}
        self._makers = {str(v.name): str(node.name) for node in model.graph for v in node.outputs if v.name}

    def of(self, model: ir.Model) -> dict[str, tuple[str, ...]]:
        return {str(node.name): self._sources(node) for node in model.graph}

    def _sources(self, node: ir.Node) -> tuple[str, ...]:
        """The node itself, the makers of its outputs, which it took over, and the same of the nodes it stands for."""
        found: dict[str, None] = {}
        outputs = tuple(str(value.name) for value in node.outputs)
        for name, values in (*node.meta.get(STANDS_FOR, ()), (str(node.name), outputs)):
            own = [name] if name in self._names else []
            found |= dict.fromkeys([*own, *(self._makers[value] for value in values if value in self._makers)])
        return tuple(found)
