"""Every key of extra_options that onnxruntime knows is mapped, needs nothing, or is refused by name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnxruntime.quantization import StaticQuantConfig

import hexqdq.app.quantization as ours
from hexqdq.app.quantization.extra import OPTIONS, Request, request_of
from hexqdq.errors import UsageError
from tests.app.quantization.readers import Reader, images, network
from tests.import_.models import parse


def encodings(folder: Path, **options: Any) -> dict[str, tuple[float, int]]:
    """Scale and zero point by the tensor that a Q reads."""
    path = folder / "q.onnx"
    ours.quantize_static(network(), path, Reader(images(8)), **options)
    model = onnx.load(path)
    values = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    quantizers = [node for node in model.graph.node if node.op_type == "QuantizeLinear"]
    return {q.input[0]: (float(values[q.input[1]]), int(values[q.input[2]])) for q in quantizers}


def test_every_key_of_their_documentation_is_known() -> None:
    text = StaticQuantConfig.__init__.__doc__ or ""
    documented = set(re.findall(r"^ +([A-Za-z.]+) = ", text, re.MULTILINE))
    assert len(documented) > 15
    assert documented <= set(OPTIONS)


@pytest.mark.parametrize("name", [name for name, option in OPTIONS.items() if option.apply is None and option.instead])
def test_refusals_name_the_key_and_what_to_do(name: str) -> None:
    option = OPTIONS[name]
    other = not option.neutral[0] if isinstance(option.neutral[0], bool) else "something"
    with pytest.raises(UsageError, match=re.escape(name)) as caught:
        request_of({name: other})
    assert caught.value.hint == option.instead
    for value in option.neutral:
        assert request_of({name: value}) == Request()


def test_unknown_keys_are_refused() -> None:
    with pytest.raises(UsageError, match="ActivationSymmetric"):
        request_of({"ActivationSymetric": True})


def test_symmetric_activations(tmp_path: Path) -> None:
    plain, mirrored = encodings(tmp_path), encodings(tmp_path, extra_options={"ActivationSymmetric": True})
    free = set(plain) - {"s2"}  # the op fixes the range of s2
    assert any(plain[name][1] not in (0, -1) for name in free)
    assert all(mirrored[name][1] in (0, -1) for name in free)


def test_restricted_activations(tmp_path: Path) -> None:
    found = encodings(
        tmp_path, activation_type=ours.QuantType.QUInt8, extra_options={"ActivationRestrictedAsymmetric": True}
    )
    assert {zero_point for _, zero_point in found.values()} <= {0, 127, 128}


def test_smallest_span(tmp_path: Path) -> None:
    found = encodings(tmp_path, extra_options={"MinimumRealRange": 100.0})
    assert all(scale >= np.float32(100 / 255) for name, (scale, _) in found.items() if name != "s2")


def test_single_tensors(tmp_path: Path) -> None:
    overrides: dict[str, list[dict[str, Any]]] = {
        "c2": [{"rmin": -8.0, "rmax": 8.0}],
        "m2": [{"symmetric": True}],
        "image": [{"scale": 0.05, "zero_point": 3}],
        "scores": [{"quant_type": ours.QuantType.QInt16}],
    }
    found = encodings(tmp_path, extra_options={"TensorQuantOverrides": overrides})
    assert found["c2"][0] == pytest.approx(16 / 255)
    assert found["m2"][1] in (0, -1)
    assert found["image"][0] == pytest.approx(0.05) and found["image"][1] == 3
    assert min(scale for name, (scale, _) in found.items() if name.startswith("scores")) < 1e-3


def test_types_of_single_weights(tmp_path: Path) -> None:
    encodings(tmp_path, extra_options={"TensorQuantOverrides": {"w2": [{"quant_type": ours.QuantType.QInt16}]}})
    stored = {t.data_type for t in onnx.load(tmp_path / "q.onnx").graph.initializer if t.dims == [16, 8, 3, 3]}
    assert stored == {onnx.TensorProto.INT16}
    with pytest.raises(UsageError, match="of weights"):
        encodings(tmp_path, extra_options={"TensorQuantOverrides": {"w2": [{"rmin": 1.0}]}})


def test_what_cannot_be_said_of_single_tensors(tmp_path: Path) -> None:
    for name, entry in (("w9", {"rmin": 0.0, "rmax": 1.0}), ("w9", {"quant_type": ours.QuantType.QInt8})):
        with pytest.raises(UsageError, match=name):
            encodings(tmp_path, extra_options={"TensorQuantOverrides": {name: [entry]}})
    for key, said in (("scale", "both"), ("convert", "convert"), ("axis", "axis")):
        with pytest.raises(UsageError, match=said):
            request_of({"TensorQuantOverrides": {"c2": [{key: 1}]}})
    with pytest.raises(UsageError, match="2 dictionaries"):
        request_of({"TensorQuantOverrides": {"c2": [{}, {}]}})


def test_knobs_of_methods(tmp_path: Path) -> None:
    cut = {"calibrate_method": ours.CalibrationMethod.Percentile, "extra_options": {"CalibPercentile": 90.0}}
    whole, narrow = encodings(tmp_path), encodings(tmp_path, **cut)
    assert narrow["image"][0] < 0.7 * whole["image"][0]
    average = encodings(tmp_path, extra_options={"CalibMovingAverage": True})
    assert average["image"][0] < whole["image"][0]
    with pytest.raises(UsageError, match="CalibPercentile"):
        request_of({"CalibPercentile": "most"})


def test_blocks_of_weights(tmp_path: Path) -> None:
    path = tmp_path / "q.onnx"
    weights = np.random.default_rng(0).normal(size=(64, 5)).astype(np.float32)
    model = parse("m (float[2,64] x) => (float[2,5] y) { y = MatMul(x, w) }", w=weights)
    feeds = [{"x": np.random.default_rng(1).normal(size=(2, 64)).astype(np.float32)}]
    ours.quantize_static(
        model, path, Reader(feeds), weight_type=ours.QuantType.QInt4, per_channel=True, extra_options={"BlockSize": 16}
    )
    restored = [node for node in onnx.load(path).graph.node if node.op_type == "DequantizeLinear"]
    assert 16 in [attribute.i for node in restored for attribute in node.attribute if attribute.name == "block_size"]
    with pytest.raises(UsageError, match="weight_block"):
        ours.quantize_static(network(), path, Reader(images(8)), extra_options={"BlockSize": 5})


def test_scales_are_moved_unless_told_not_to() -> None:
    assert request_of({}).smooth and request_of({"SmoothQuant": True}).smooth
    assert not request_of({"SmoothQuant": False}).smooth


def test_products_of_two_activations_can_stay_float(tmp_path: Path) -> None:
    assert request_of({"MatMulConstBOnly": True}).only_constant_weights
    found = encodings(tmp_path, extra_options={"MatMulConstBOnly": True})
    assert set(found) == set(encodings(tmp_path))
