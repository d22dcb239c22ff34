"""quantize_static beside onnxruntime's own: the same call, the same kind of model, no worse outputs."""

from __future__ import annotations

import inspect
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime.quantization as theirs
import pytest

import hexqdq.app.quantization as ours
from hexqdq.app.quantization.static import Choice
from hexqdq.errors import CalibrationError, HexqdqError, UnsupportedError, UsageError
from hexqdq.import_.pipeline import import_model
from tests.app.quantization.readers import Array, Reader, images, network, run, sqnr
from tests.import_.models import parse

CALIBRATION, TESTED = images(16), images(32, seed=1)


def quantized(folder: Path, library: Any, **options: Any) -> Path:
    """The small CNN through one of both libraries, called alike."""
    path, source = folder / f"{library.__name__}.onnx", folder / "float.onnx"
    onnx.save(network(), source)
    options = {name: getattr(library, value) if name == "module" else value for name, value in options.items()}
    library.quantize_static(source, path, Reader(CALIBRATION), **options)
    return path


def ops(path: Path) -> Counter[str]:
    return Counter(node.op_type for node in onnx.load(path).graph.node)


def scales(path: Path, zero_point: type[np.generic]) -> list[Array]:
    """The zero points of Q nodes in a type."""
    model = onnx.load(path)
    values = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    found = [values[node.input[2]] for node in model.graph.node if node.op_type == "QuantizeLinear"]
    return [value for value in found if value.dtype == zero_point]


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize(("activations", "weights"), [("QInt8", "QInt8"), ("QUInt8", "QInt8"), ("QUInt16", "QInt8")])
def test_one_import_moves_over(activations: str, weights: str, per_channel: bool, tmp_path: Path) -> None:
    exact = run(network(), TESTED)
    ratios = {}
    for library in (theirs, ours):
        types = {
            "activation_type": library.QuantType[activations],
            "weight_type": library.QuantType[weights],
        }
        method = library.CalibrationMethod.MinMax
        path = quantized(tmp_path, library, per_channel=per_channel, calibrate_method=method, **types)
        assert onnx.load(path).opset_import[0].version >= 17
        ratios[library.__name__] = sqnr(exact, run(path, TESTED))
    assert ratios[ours.__name__] > ratios[theirs.__name__] - 1
    assert ratios[ours.__name__] > 20


@pytest.mark.parametrize("weights", ["QInt8", "QUInt8", "QInt4", "QInt16"])
def test_types_are_those_asked_for(weights: str, tmp_path: Path) -> None:
    types = {"activation_type": ours.QuantType.QUInt8, "weight_type": ours.QuantType[weights]}
    model = onnx.load(quantized(tmp_path, ours, **types))
    stored = Counter(t.data_type for t in model.graph.initializer if t.name.endswith("_quantized"))
    assert stored[ours.QuantType[weights].tensor_type] == 3
    zero_points = {node.input[2] for node in model.graph.node if node.op_type == "QuantizeLinear"}
    assert {t.data_type for t in model.graph.initializer if t.name in zero_points} == {onnx.TensorProto.UINT8}


@pytest.mark.parametrize("method", ["MinMax", "Entropy", "Percentile"])
def test_methods(method: str, tmp_path: Path) -> None:
    path = quantized(tmp_path, ours, calibrate_method=ours.CalibrationMethod[method], per_channel=True)
    assert sqnr(run(network(), TESTED), run(path, TESTED)) > 15


def test_the_digits_model(root: Path, tmp_path: Path) -> None:
    folder = root / "models" / "digits"
    with np.load(folder / "digits_calib.npz") as calibration, np.load(folder / "digits_heldout.npz") as held_out:
        feeds = [{"image": image[None]} for image in calibration["image"]]
        x, labels = held_out["x"], held_out["y"]
    tested = [{"image": image[None]} for image in x]
    accuracy = {}
    for library in (theirs, ours):
        path = tmp_path / f"{library.__name__}.onnx"
        library.quantize_static(
            str(folder / "digits.onnx"),
            str(path),
            Reader(feeds),
            quant_format=library.QuantFormat.QDQ,
            activation_type=library.QuantType.QUInt8,
            weight_type=library.QuantType.QInt8,
            per_channel=True,
        )
        accuracy[library.__name__] = (run(path, tested).argmax(1) == labels).mean()
    assert accuracy[ours.__name__] >= accuracy[theirs.__name__] - 0.005
    assert accuracy[ours.__name__] > 0.95


def test_signatures_are_theirs() -> None:
    for name in ("quantize_static", "quantize", "get_qdq_config", "StaticQuantConfig", "quant_pre_process"):
        mine, other = (inspect.signature(getattr(library, name)).parameters for library in (ours, theirs))
        positional = [key for key, value in mine.items() if value.kind is not value.VAR_KEYWORD]
        assert positional == [key for key, value in other.items() if value.kind is not value.VAR_KEYWORD]
        for key in positional:
            left, right = mine[key].default, other[key].default
            assert getattr(left, "name", left) == getattr(right, "name", right), (name, key)


def test_every_public_name_is_there_or_refused_by_name() -> None:
    for name in (
        name for name in vars(theirs) if not name.startswith("_") and not inspect.ismodule(vars(theirs)[name])
    ):
        if name in ours.__all__:
            assert getattr(ours, name) is not None
        else:
            with pytest.raises(UnsupportedError, match=name):
                getattr(ours, name)
    with pytest.raises(AttributeError, match="magic"):
        ours.magic  # noqa: B018
    with pytest.raises(UnsupportedError, match="quantize_dynamic"):
        ours.quantize_dynamic("a.onnx", "b.onnx")


def test_their_enumerations_and_readers_do_too(tmp_path: Path) -> None:
    path = tmp_path / "q.onnx"
    types = {"activation_type": theirs.QuantType.QUInt8, "quant_format": theirs.QuantFormat.QDQ}

    class Plain:
        """A reader that derives from nothing."""

        def __init__(self) -> None:
            self.left = list(CALIBRATION)

        def get_next(self) -> dict[str, Array] | None:
            return self.left.pop() if self.left else None

    call: Any = ours.quantize_static
    call(network(), path, Plain(), calibrate_method=theirs.CalibrationMethod.MinMax, **types)
    assert isinstance(Plain(), ours.CalibrationDataReader)
    assert len(scales(path, np.uint8)) > 5


@pytest.mark.parametrize(
    ("choice", "kept"),
    [
        (Choice(), set()),
        (Choice(excluded=["Sigmoid_s2"]), {"Sigmoid"}),
        (
            Choice(op_types=["Conv"]),
            {"Relu", "MaxPool", "Sigmoid", "Mul", "GlobalAveragePool", "Flatten", "MatMul", "Add"},
        ),
        (Choice(op_types=["BatchNormalization", "MatMul"], excluded=["MatMul_h"]), {"Conv_c2", "MatMul"}),
        (Choice(excluded=["BatchNormalization_bn"]), {"Conv_c1"}),
        (Choice(only_constant_weights=True), set()),
    ],
)
def test_nodes_are_chosen_by_name_and_type(choice: Choice, kept: set[str]) -> None:
    """A BatchNormalization counts as the Conv into which it folds."""
    source = network()
    imported = import_model(source, {"image": (1, 3, 16, 16)})
    types = {node.name: node.op_type for node in source.graph.node}
    found = set(choice.kept_float(imported, types))
    for name in kept:
        assert any(node.startswith(name) for node in found), name
    if not choice.op_types:
        assert len(found) == len(kept)


def test_products_of_two_activations_can_be_left_out() -> None:
    imported = import_model(parse("m (float[2,4] x, float[4,5] v) => (float[2,5] y) { y = MatMul(x, v) }"))
    assert list(Choice(only_constant_weights=True).kept_float(imported, {})) == ["MatMul_y"]
    assert list(Choice().kept_float(imported, {})) == []


def test_chosen_nodes_alone_are_quantized(tmp_path: Path) -> None:
    assert ops(quantized(tmp_path, ours, nodes_to_quantize=["MatMul_h"]))["QuantizeLinear"] == 2
    assert ops(quantized(tmp_path, ours, op_types_to_quantize=["Conv"]))["QuantizeLinear"] == 4
    for argument in ("nodes_to_exclude", "nodes_to_quantize"):
        with pytest.raises(UsageError, match=f"{argument}: names 'Conv_c9'"):
            quantized(tmp_path, ours, **{argument: ["Conv_c9"]})


def test_shapes_are_those_of_the_samples(tmp_path: Path) -> None:
    path = tmp_path / "q.onnx"
    ours.quantize_static(network(), path, Reader(images(4, batch=2)))
    shape = onnx.load(path).graph.input[0].type.tensor_type.shape
    assert [dim.dim_value for dim in shape.dim] == [2, 3, 16, 16]


def test_external_data(tmp_path: Path) -> None:
    path = quantized(tmp_path, ours, use_external_data_format=True)
    assert len(list(tmp_path.glob(f"{path.name}.*.data"))) == 1
    assert run(path, TESTED[:1]).shape == (1, 5)


def test_cache_stands_in_for_the_reader(tmp_path: Path) -> None:
    cache = tmp_path / "cache.json"
    source, first, second = tmp_path / "float.onnx", tmp_path / "a.onnx", tmp_path / "b.onnx"
    onnx.save(network(), source)
    shaped = tmp_path / "static.onnx"
    static = network()
    static.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    onnx.save(static, shaped)
    options: dict[str, Any] = {"extra_options": {"ActivationSymmetric": True}, "calibration_cache_path": cache}
    ours.quantize_static(shaped, first, Reader(CALIBRATION), **options)
    ours.quantize_static(shaped, second, **options)
    assert cache.exists()
    left, right = (np.concatenate([z.reshape(-1) for z in scales(path, np.int8)]) for path in (first, second))
    assert np.array_equal(left, right)
    with pytest.raises(CalibrationError, match="calibration_data_reader"):
        ours.quantize_static(shaped, second)


def test_configurations(tmp_path: Path) -> None:
    path = tmp_path / "q.onnx"
    config = ours.get_qdq_config(
        network(),
        Reader(CALIBRATION),
        calibrate_args={"moving_average": True},
        nodes_to_exclude=lambda model, node: node.op_type == "Sigmoid",
        per_channel=True,
    )
    assert config.nodes_to_exclude == ["Sigmoid_s2"] and config.extra_options["CalibMovingAverage"] is True
    ours.quantize(network(), path, config)
    assert sqnr(run(network(), TESTED), run(path, TESTED)) > 20
    with pytest.raises(UsageError, match="StaticQuantConfig"):
        ours.quantize(network(), path, ours.QuantConfig())


def test_pre_processing_keeps_names(tmp_path: Path) -> None:
    source, path = tmp_path / "float.onnx", tmp_path / "prepared.onnx"
    onnx.save(network(), source)
    ours.quant_pre_process(source, path)
    prepared = onnx.load(path)
    assert [node.name for node in prepared.graph.node] == [node.name for node in network().graph.node]
    assert {value.name for value in prepared.graph.value_info} >= {"c1", "bn", "m2"}
    ours.quant_pre_process(network(), path, skip_onnx_shape=True, save_as_external_data=True)
    assert not onnx.load(path).graph.value_info
    with pytest.raises(UsageError, match="output_model_path"):
        ours.quant_pre_process(source)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"quant_format": ours.QuantFormat.QOperator}, "quant_format"),
        ({"reduce_range": True}, "reduce_range"),
        ({"calibration_providers": ["CUDAExecutionProvider"]}, "calibration_providers"),
        ({"calibrate_method": ours.CalibrationMethod.Distribution}, "Distribution"),
        ({"activation_type": ours.QuantType.QFLOAT8E4M3FN}, "QFLOAT8E4M3FN"),
        ({"activation_type": ours.QuantType.QInt4}, "QInt4"),
        ({"weight_type": ours.QuantType.QUInt4}, "QUInt4"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(HexqdqError, match=said) as caught:
        ours.quantize_static(network(), tmp_path / "q.onnx", Reader(CALIBRATION), **options)
    assert caught.value.hint
    assert not (tmp_path / "q.onnx").exists()


def test_readers_without_samples_are_told(tmp_path: Path) -> None:
    with pytest.raises(HexqdqError):
        ours.quantize_static(network(), tmp_path / "q.onnx", Reader([]))
    reader: Any = object()
    with pytest.raises(CalibrationError, match="get_next"):
        ours.quantize_static(network(), tmp_path / "q.onnx", reader)


def test_types_have_names_and_numbers() -> None:
    for member in ours.QuantType:
        other = theirs.QuantType[member.name]
        assert (member.value, member.tensor_type, str(member)) == (other.value, other.tensor_type, str(other))
    assert ours.QuantType.from_string("QInt8") is ours.QuantType.QInt8
    with pytest.raises(UsageError, match="QInt9"):
        ours.QuantType.from_string("QInt9")
    assert ours.QuantFormat.from_string("QDQ") is ours.QuantFormat.QDQ
