"""quantize_model and compile_model hand products to each other without a file between."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hexqdq
from hexqdq.errors import UsageError
from hexqdq.quantize.product import QdqModel
from tests.quantize.graphs import model, samples

CONV = "m (float[1,3,8,8] x) => (float[1,4,6,6] y) { y = Conv(x, w, b) }"


def test_what_quantize_returns_compiles(tmp_path: Path) -> None:
    from hexqdq.import_.pipeline import import_model

    source = model(CONV)
    feeds = samples(import_model(source))
    product = hexqdq.quantize_model(source, feeds)
    assert isinstance(product, QdqModel)
    path = hexqdq.quantize_model(source, feeds, output=tmp_path / "m.qdq.onnx")
    assert isinstance(path, Path)
    contexts = [
        hexqdq.compile_model(given, output=tmp_path / f"{name}.ctx")
        for name, given in (("product", product), ("file", path))
    ]
    results = [hexqdq.InferenceSession(str(context)).run(None, feeds[0])[0] for context in contexts]
    np.testing.assert_array_equal(results[0], results[1])
    with pytest.raises(UsageError, match="input_shapes"):
        hexqdq.compile_model(product, input_shapes={"x": (1, 3, 8, 8)})
