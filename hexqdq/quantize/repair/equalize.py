"""Cross-layer equalization: a tensor's channels get equal ranges in the weights on both sides of it.

    s_i = sqrt(r1_i / r2_i),  W1'_i = W1_i / s_i,  b1'_i = b1_i / s_i,  W2'_i = W2_i s_i

where r1_i is the largest magnitude of the weights that make channel i and r2_i that of those that read
it, so that both become sqrt(r1_i r2_i) (Nagel, van Baalen, Blankevoort, Welling 2019, "Data-Free
Quantization Through Weight Equalization and Bias Correction", equations 7 to 11). Needs no samples. The
factors are powers of two, by which floats scale exactly. Pairs are visited in the order of computation
until all factors are 1, at most ROUNDS times.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from hexqdq.quantize.calibration.calibrate import Progress, Sample
from hexqdq.quantize.draft import Draft
from hexqdq.quantize.repair.seams.find import NORMS, fixed_values, seams
from hexqdq.quantize.repair.seams.weights import made_weights, read_weights, scale
from hexqdq.quantize.repair.smooth import balanced

ROUNDS = 20


def equalize(draft: Draft, samples: Iterable[Sample], progress: Progress | None = None) -> Draft:
    """The draft with equalized weights; the float model's outputs stay what they are."""
    model = draft.imported.model.clone()
    for done in range(ROUNDS):
        if progress is not None:
            progress(done + 1, ROUNDS)
        if not _round(model, fixed_values(draft.recipe)):
            break
    return replace(draft, imported=replace(draft.imported, model=model))


def _round(model: ir.Model, fixed: Collection[str]) -> bool:
    """Equalizes every pair once; returns whether any changed."""
    changed = False
    for seam in list(seams(model.graph, fixed)):
        if seam.maker.op_type in NORMS:
            continue
        made = np.abs(made_weights(seam)).max(axis=1)
        read = np.max([read_weights(reader, seam.channels).largest.max(axis=0) for reader in seam.readers], axis=0)
        factors = balanced(made, read, 0.5)
        if (factors != 1).any():
            scale(model, seam, factors)
            changed = True
    return changed
