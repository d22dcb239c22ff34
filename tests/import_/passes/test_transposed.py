"""Transposed convolutions of stride 1 become convolutions of the same numbers; others stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper

from hexqdq.import_.passes.transposed import rewrite_transposed
from hexqdq.import_.pipeline import import_model
from tests.import_.models import outputs, parse

Array = NDArray[Any]
CONSTANTS = {
    "w": (4, 6, 3, 2),
    "depthwise": (4, 1, 3, 3),
    "grouped": (4, 3, 3, 3),
    "point": (4, 5, 1, 1),
    "b": (6,),
    "line": (4, 2, 3),
}
REWRITTEN = {
    "plain": "y = ConvTranspose(x, w, b)",
    "padded": "y = ConvTranspose <pads = [2, 1, 0, 0]> (x, w)",
    "depthwise": "y = ConvTranspose <group = 4, dilations = [2, 1], pads = [3, 1, 3, 1]> (x, depthwise)",
    "grouped": "y = ConvTranspose <group = 2, kernel_shape = [3, 3]> (x, grouped, b)",
    "point": "y = ConvTranspose(x, point)",
    "same": 'y = ConvTranspose <auto_pad = "SAME_UPPER"> (x, w)',
}
KEPT = {
    "stride": "y = ConvTranspose <strides = [2, 1]> (x, w)",
    "cropped": "y = ConvTranspose <pads = [3, 0, 0, 0]> (x, w)",
    "computed_weights": "v = Mul(x, x) y = ConvTranspose(x, v)",
}


def normal(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def transposed(body: str, shape: str = "1,4,4,4") -> Any:
    made = parse(f"m (float[{shape}] x) => (float[*] y) {{ {body} }}".replace("float[*]", "float[a,b,c,d]"))
    used = {name for node in made.graph.node for name in node.input}
    held = [numpy_helper.from_array(normal(*CONSTANTS[name]), name) for name in sorted(used & set(CONSTANTS))]
    made.graph.initializer.extend(held)
    return made


@pytest.mark.parametrize("body", REWRITTEN.values(), ids=REWRITTEN)
def test_the_convolution_gives_the_same(body: str) -> None:
    model = transposed(body)
    imported = import_model(model)
    assert [node.op_type for node in imported.model.graph] == ["Conv"]
    feed = {"x": normal(1, 4, 4, 4)}
    np.testing.assert_allclose(outputs(imported.model, feed)[0], outputs(model, feed)[0], rtol=1e-5, atol=1e-5)
    assert rewrite_transposed(imported.model) == 0


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT)
def test_others_stay(body: str) -> None:
    imported = import_model(transposed(body))
    assert "ConvTranspose" in [node.op_type for node in imported.model.graph]


def test_scales_are_per_channel_afterwards() -> None:
    from hexqdq.quantize.planning.graph import weight_axis

    (node,) = import_model(transposed(REWRITTEN["depthwise"])).model.graph
    assert weight_axis(node) == 0
