"""Comparing tensors: the figures are those of their definitions, and the first bad tensor is at the top."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from hexqdq.app.compare.comparison import Comparison, compare, level
from hexqdq.errors import ModelError
from hexqdq.import_.pipeline import import_model
from hexqdq.quantize.pipeline import quantize
from hexqdq.quantize.recipe import Recipe
from hexqdq.quantize.scaled import mark_scaled, marked
from hexqdq.quantize.writing.save import save
from hexqdq.report import plain_lines
from tests.import_.models import outputs
from tests.quantize import planted
from tests.quantize.graphs import model, samples

Array = NDArray[Any]
CHAIN = """m (float[1,3,8,8] x) => (float[1,4,6,6] y) {
    a = Conv(x, w, b) r = Relu(a) s = Sigmoid(r) y = Mul(r, s)
}"""
PLAIN = Recipe(method="minmax", bias_correct=False, smooth=False, mixed=False)


def compared(folder: Path, ranges: dict[str, tuple[float, float]], good: float = 20.0) -> Comparison:
    """CHAIN against itself quantized, some ranges put in by hand."""
    onnx.save(model(CHAIN), folder / "float.onnx")
    imported = import_model(folder / "float.onnx")
    feeds = samples(imported)
    found = quantize(imported, feeds, PLAIN).ranges
    save(quantize(imported, None, PLAIN, ranges={**found, **ranges}), folder / "qdq.onnx")
    return compare(folder / "float.onnx", folder / "qdq.onnx", feeds, good=good)


def test_figures_are_their_definitions(tmp_path: Path) -> None:
    comparison = compared(tmp_path, {})
    entry = next(entry for entry in comparison.measures if entry.tensor == "y")
    feeds = samples(import_model(tmp_path / "float.onnx"))
    qdq = onnx.load(tmp_path / "qdq.onnx")
    exact = np.stack([outputs(model(CHAIN), feed)[0] for feed in feeds]).astype(np.float64)
    rough = np.stack([outputs(qdq, feed)[0] for feed in feeds]).astype(np.float64)
    assert entry.sqnr == pytest.approx(10 * np.log10((exact**2).sum() / ((exact - rough) ** 2).sum()), abs=1e-3)
    assert entry.cosine == pytest.approx(np.vdot(exact, rough) / np.linalg.norm(exact) / np.linalg.norm(rough))
    channels = 10 * np.log10((exact**2).sum((0, 1, 3, 4)) / ((exact - rough) ** 2).sum((0, 1, 3, 4)))
    assert entry.worst_channel == channels.argmin()
    assert entry.worst_channel_sqnr == pytest.approx(channels.min(), abs=1e-3)
    assert (entry.low, entry.high) == pytest.approx((exact.min(), exact.max()), rel=1e-5)


def test_good_model_has_no_bad_tensor(tmp_path: Path) -> None:
    comparison = compared(tmp_path, {})
    assert [entry.tensor for entry in comparison.measures] == ["x", "a", "r", "s", "y"]
    assert comparison.to_json()["first_bad"] is None
    assert comparison.to_text() == "0 of 5 tensors are below 20 dB"
    ranked = [entry.sqnr for entry in comparison.ranked() if entry.sqnr is not None]
    assert ranked == sorted(ranked)


def test_wide_range_is_named(tmp_path: Path) -> None:
    comparison = compared(tmp_path, {"r": (0.0, 2000.0)})
    assert comparison.ranked()[0].tensor == "r"
    assert comparison.to_json()["first_bad"] == "r"
    said = (
        "first bad tensor: r (Relu); its error is introduced here: its range [0, 2000] is too wide: its values lie in"
    )
    assert said in comparison.to_text()


def test_narrow_range_is_named(tmp_path: Path) -> None:
    comparison = compared(tmp_path, {"r": (0.0, 0.5)})
    top = comparison.ranked()[0]
    assert top.tensor == "r" and top.saturated is not None and top.saturated > 0.2
    assert "its range leaves out" in comparison.to_text()


def test_broken_weights_are_named(tmp_path: Path) -> None:
    compared(tmp_path, {})
    qdq = onnx.load(tmp_path / "qdq.onnx")
    scale = next(t for t in qdq.graph.initializer if t.name.startswith("Conv_a_weight") and "scale" in t.name)
    scale.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(scale) * np.float32(3), scale.name))
    onnx.save(qdq, tmp_path / "qdq.onnx")
    feeds = samples(import_model(tmp_path / "float.onnx"))
    comparison = compare(tmp_path / "float.onnx", tmp_path / "qdq.onnx", feeds)
    assert "first bad tensor: a (Conv)" in comparison.to_text()
    assert "introduced here: its encoding is good enough, so it comes from weights, bias" in comparison.to_text()


def test_json_is_json(tmp_path: Path) -> None:
    data = json.loads(json.dumps(compared(tmp_path, {"r": (0.0, 2000.0)}, good=15).to_json(), allow_nan=False))
    assert data["good"] == 15 and len(data["tensors"]) == 5
    assert data["tensors"][0]["tensor"] == "r"


def test_what_a_tensor_inherits_is_told_from_what_it_introduces(tmp_path: Path) -> None:
    comparison = compared(tmp_path, {"r": (0.0, 300.0)})
    by_name = {entry.tensor: entry for entry in comparison.measures}
    broken, after, before = by_name["r"], by_name["s"], by_name["a"]
    assert before.introduced is not None and broken.introduced is not None and after.inherited is not None
    assert broken.introduced < 20 < 30 < level(broken.inherited)
    assert after.inherited < level(after.introduced) - 10
    assert "introduced here" in comparison.cause(broken)
    assert "inherited from its inputs; most is introduced at r (Relu, " in comparison.cause(by_name["y"])
    assert comparison.to_blame()[0].tensor == "r"


def test_inherited_and_introduced_are_their_definitions(tmp_path: Path) -> None:
    comparison = compared(tmp_path, {})
    entry = next(entry for entry in comparison.measures if entry.tensor == "y")
    feeds = samples(import_model(tmp_path / "float.onnx"))
    exact, rough = (watched(onnx.load(tmp_path / name), feeds) for name in ("float.onnx", "qdq.onnx"))
    forced = rough["r_dequantized"] * rough["s_dequantized"]
    signal = (exact["y"] ** 2).sum()
    inherited = 10 * np.log10(signal / ((exact["y"] - forced) ** 2).sum())
    introduced = 10 * np.log10(signal / ((rough["y"] - forced) ** 2).sum())
    assert entry.inherited == pytest.approx(inherited, abs=1e-3)
    assert entry.introduced == pytest.approx(introduced, abs=1e-3)


def watched(proto: onnx.ModelProto, feeds: list[dict[str, Array]]) -> dict[str, Array]:
    """Every float value over all samples, in float64."""
    inferred = onnx.shape_inference.infer_shapes(proto)
    listed = {value.name for value in inferred.graph.output}
    floats = [v for v in inferred.graph.value_info if v.type.tensor_type.elem_type == onnx.TensorProto.FLOAT]
    inferred.graph.output.extend(value for value in floats if value.name not in listed)
    found = [outputs(inferred, feed) for feed in feeds]
    names = [value.name for value in inferred.graph.output]
    return {name: np.stack([run[place] for run in found]).astype(np.float64) for place, name in enumerate(names)}


def test_a_value_of_two_encodings_names_both(tmp_path: Path) -> None:
    compared(tmp_path, {})
    imported = import_model(tmp_path / "float.onnx")
    qdq = onnx.load(tmp_path / "qdq.onnx")
    scale, zero_point = np.float32(1e-4), np.uint16(0)
    qdq.graph.initializer.append(onnx.numpy_helper.from_array(np.array(scale), "fine_scale"))
    qdq.graph.initializer.append(onnx.numpy_helper.from_array(np.array(zero_point), "fine_zero"))
    made = [
        onnx.helper.make_node("QuantizeLinear", ["r_dequantized", "fine_scale", "fine_zero"], ["fine_q"], "fine_q"),
        onnx.helper.make_node("DequantizeLinear", ["fine_q", "fine_scale", "fine_zero"], ["fine"], "fine"),
    ]
    (mul,) = (node for node in qdq.graph.node if node.op_type == "Mul")
    place = list(qdq.graph.node).index(mul)
    mul.input[list(mul.input).index("r_dequantized")] = "fine"
    for node in reversed(made):
        qdq.graph.node.insert(place, node)
    qdq.opset_import[0].version = 21
    onnx.save(qdq, tmp_path / "qdq.onnx")
    comparison = compare(tmp_path / "float.onnx", tmp_path / "qdq.onnx", samples(imported))
    types = {entry.tensor: entry.types for entry in comparison.measures}
    assert types["r"] == ("u8", "u16") and types["y"] == ("u8",) and types["a"] == ()
    assert "r       Relu     u8 u16" in "\n".join(plain_lines(comparison.tables()[0]))
    assert comparison.bad == ()


def test_values_that_are_scaled_on_purpose_are_no_errors(tmp_path: Path) -> None:
    """The channels of ``a`` and ``r`` are halved and doubled again by what reads them."""
    text = "m (float[1,3,8,8] x) => (float[1,4,4,4] y) { a = Conv(x, w, b) r = Relu(a) y = Conv(r, v) }"
    weights = np.random.default_rng(0).normal(size=(4, 4, 3, 3)).astype(np.float32)
    exact = model(text)
    exact.graph.initializer.append(onnx.numpy_helper.from_array(weights, "v"))
    halved = onnx.ModelProto.FromString(exact.SerializeToString())
    for tensor in halved.graph.initializer:
        factor = np.float32(2 if tensor.name == "v" else 0.5)
        tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor) * factor, tensor.name))
    onnx.save(exact, tmp_path / "float.onnx")
    imported = import_model(halved)
    feeds = samples(imported)
    mark_scaled(imported.model, ["r", "a"])
    save(quantize(imported, feeds, PLAIN), tmp_path / "qdq.onnx")
    assert marked(import_model(tmp_path / "qdq.onnx").model) == {"a", "r"}
    comparison = compare(tmp_path / "float.onnx", tmp_path / "qdq.onnx", feeds)
    assert [entry.tensor for entry in comparison.measures] == ["x", "y"]
    assert comparison.to_text() == "0 of 2 tensors are below 20 dB; 2 more were scaled on purpose and are not compared"
    assert comparison.to_json()["scaled"] == ["a", "r"]
    assert comparison.bad == ()
    assert all(level(entry.introduced) > 30 for entry in comparison.measures)


@pytest.mark.parametrize("least", [-np.inf, -1e9, -1e4])
def test_what_masks_hide_is_no_error(least: float, tmp_path: Path) -> None:
    exact, feeds = planted.mask(least)
    onnx.save(exact, tmp_path / "float.onnx")
    imported = import_model(tmp_path / "float.onnx")
    save(quantize(imported, feeds, PLAIN), tmp_path / "qdq.onnx")
    comparison = compare(tmp_path / "float.onnx", tmp_path / "qdq.onnx", feeds, with_histograms=True)
    entry = next(entry for entry in comparison.measures if entry.tensor == "h")
    assert entry.low > -100 and entry.high < 100 and comparison.bad == ()
    assert entry.saturated is not None and entry.saturated < 0.1
    json.dumps(comparison.to_json(), allow_nan=False)
    assert all(np.isfinite(found.edges).all() for found in comparison.histograms)


def test_strangers_are_refused(tmp_path: Path) -> None:
    onnx.save(model(CHAIN), tmp_path / "float.onnx")
    feeds = samples(import_model(tmp_path / "float.onnx"))
    with pytest.raises(ModelError, match="has no quantized tensor in common"):
        compare(tmp_path / "float.onnx", tmp_path / "float.onnx", feeds)
