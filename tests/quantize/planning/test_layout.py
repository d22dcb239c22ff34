"""Constants of Gemm in the form that units have."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import numpy_helper

from hexqdq.import_.pipeline import import_model
from hexqdq.quantize.pipeline import quantize
from hexqdq.quantize.planning.layout import laid_out
from hexqdq.quantize.recipe import Recipe
from tests.import_.models import outputs, parse
from tests.quantize.graphs import normal, samples


@pytest.mark.parametrize("block", [0, 16])
@pytest.mark.parametrize(
    "attributes", ["alpha = 0.5", "beta = 3.0", "alpha = 2.0, beta = 0.25, transB = 1", "transB = 1"]
)
def test_factors_and_turns_go_into_the_constants(attributes: str, block: int) -> None:
    proto = parse(
        f"""m (float[3,16] x, float[3,16] z) => (float[3,16] y, float[3,16] t) {{
        y = Gemm <{attributes}> (x, weight, bias) t = Gemm <{attributes}> (z, weight, bias) }}"""
    )
    held = {"weight": normal(16, 16, seed=1), "bias": normal(16, seed=2)}
    proto.graph.initializer.extend(numpy_helper.from_array(values, name) for name, values in held.items())
    imported, recipe = import_model(proto), Recipe(weight_block=block, mixed=False, bias_correct=False)
    made = laid_out(imported, recipe)
    feeds = samples(imported)
    for exact, found in zip(outputs(proto, feeds[0]), outputs(made.model, feeds[0]), strict=True):
        np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-5)
    for node in made.model.graph:
        assert node.attributes.get_float("alpha", 1.0) == node.attributes.get_float("beta", 1.0) == 1.0
        assert not (block and node.attributes.get_int("transB", 0))
    assert len(made.model.graph.initializers) == 2
    for exact, found in zip(
        outputs(proto, feeds[0]), outputs(quantize(imported, feeds, recipe).model, feeds[0]), strict=True
    ):
        assert np.abs(exact - found).max() <= 0.03 * np.abs(exact).max()


def test_a_model_with_nothing_to_change_stays_itself() -> None:
    imported = import_model(parse("m (float[3,16] x) => (float[3,16] y) { y = Neg(x) }"))
    assert laid_out(imported, Recipe(weight_block=16)) is imported
