"""Decomposed ops put together again, one file a kind."""

from __future__ import annotations

import onnx_ir as ir

from hexqdq.import_.patterns.arithmetic import bound, power, quotient, twice
from hexqdq.import_.patterns.gelu import gelu, mish
from hexqdq.import_.patterns.hard import hard_sigmoid, hard_swish
from hexqdq.import_.patterns.lengths import length, log_of_square
from hexqdq.import_.patterns.moments import reduce_mean
from hexqdq.import_.patterns.neutral import nan_guard, neutral, repeated
from hexqdq.import_.patterns.norms import group_normalization, last_axis, normalization
from hexqdq.import_.patterns.rule import Rule, apply_rules
from hexqdq.import_.patterns.selections import gather, scatter
from hexqdq.import_.patterns.softmax import finite_mask, log_softmax, softmax

RULES: tuple[Rule, ...] = (
    neutral,  # first: stands between the parts of the others
    reduce_mean,
    softmax,
    log_softmax,
    gelu,
    mish,
    hard_swish,
    hard_sigmoid,  # after hard_swish, which it is a part of
    normalization,
    last_axis,
    group_normalization,  # after normalization, which finds its inside
    length,
    log_of_square,  # after length, whose inside is squares too
    finite_mask,
    nan_guard,  # after finite_mask, which makes it needless
    gather,
    scatter,
    repeated,
    bound,  # last: parts that belong to nothing
    power,
    quotient,
    twice,  # after quotient, which makes products
)


def join_parts(model: ir.Model) -> int:
    """Applies every rule until none finds anything."""
    return apply_rules(model, RULES)
