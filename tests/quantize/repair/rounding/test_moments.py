"""Second moments are those of the quantized inputs, whatever the order and the threads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hexqdq import numerics
from hexqdq.import_.pipeline import import_model
from hexqdq.qtypes import QType, QuantParams
from hexqdq.quantize.calibration import calibrate as calibration
from hexqdq.quantize.repair.rounding import moments
from hexqdq.quantize.repair.rounding.layers import Layer
from tests.quantize.graphs import model, samples

TEXT = "m (float[20,4] x) => (float[20,5] y) { h = MatMul(x, wm) y = Relu(h) }"
LAYER = Layer("h", "x", QuantParams.per_tensor(QType.U8, 0.05, 100), None, True)


@pytest.mark.parametrize("dtype, zero_point", [(QType.U8, 100), (QType.S8, -3), (QType.U16, 30000)])
@pytest.mark.parametrize("centred", [True, False])
def test_hessian(dtype: QType, zero_point: int, centred: bool) -> None:
    imported = import_model(model(TEXT))
    feeds = samples(imported)
    scale = 0.05 if dtype.bits == 8 else 0.0002
    layer = replace(LAYER, params=QuantParams.per_tensor(dtype, scale, zero_point))
    (found,) = moments.collect(imported.model, [layer], feeds).values()
    read = np.concatenate(
        [numerics.dequantize(numerics.quantize(feed["x"], layer.params), layer.params) for feed in feeds]
    )
    expected = np.cov(read.T, bias=True) if centred else read.T.astype(np.float64) @ read / len(read)
    np.testing.assert_allclose(found.hessian(centred)[0], expected, rtol=2e-3, atol=2e-3)


def test_order_and_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = import_model(model(TEXT))
    feeds = samples(imported, 9)
    monkeypatch.setattr(moments, "POSITIONS", 7)
    found = set()
    for order, threads in ((feeds, 1), (feeds[::-1], 1), (feeds, 3), (feeds[::-1], 4)):
        monkeypatch.setattr(calibration, "threads_for", lambda _, threads=threads: threads)
        (one,) = moments.collect(imported.model, [LAYER], order).values()
        found.add(one.hessian(True).tobytes())
    assert len(found) == 1


def test_sums_are_exact() -> None:
    """The largest differences of 8 bits, more of them than float32 sums exactly in one go."""
    found = moments.Moments(QuantParams.per_tensor(QType.U8, 1.0))
    vectors = np.full((1, 4096, 2), 255, np.float32)
    vectors[0, :, 1] = 253
    found.add(vectors)
    np.testing.assert_array_equal(found.hessian(False), [[[255.0**2, 255 * 253], [255 * 253, 253.0**2]]])
    np.testing.assert_array_equal(found.hessian(True), np.zeros((1, 2, 2)))
