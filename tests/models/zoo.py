"""What tests of the shared models need: which run quickly, and drawn inputs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.zoo import Model
from hexqdq.ops.unit import Tensor

QUICK = {"mobilenet_v2_qat_qdq_u8", "mnist_cntk8", "kws_dscnn_qdq_s8", "wakeword_1dconv_qdq_s8"}
"""Compiled and compared within seconds; the others run with --all."""


def marked(models: Iterable[Model]) -> list[Any]:
    """A test parameter per model, the slow ones marked."""
    marks = {True: (), False: (pytest.mark.slow,)}
    return [pytest.param(model, id=model.name, marks=marks[model.name in QUICK]) for model in models]


def noise(tensor: Tensor, rng: np.random.Generator) -> NDArray[Any]:
    """Uniform over the whole integer type, or over 0..1."""
    if tensor.dtype.numpy.kind == "f":
        return rng.uniform(0, 1, tensor.shape).astype(tensor.dtype.numpy)
    return rng.integers(tensor.dtype.low, tensor.dtype.high + 1, tensor.shape).astype(tensor.dtype.numpy)
