"""Sources that are no readable ONNX model are told apart by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexqdq.errors import ModelError
from hexqdq.import_.pipeline import import_model
from tests.import_.models import relu_model, weighted_model


def test_path_string_bytes_and_proto_give_one_model(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(relu_model(), path)
    digests = {import_model(source).digest for source in (path, str(path), path.read_bytes(), relu_model())}
    assert len(digests) == 1


def test_source_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(relu_model(), path)
    assert import_model(path).source == str(path)


@pytest.mark.parametrize(
    "content, problem",
    [
        (b"", "is not an ONNX model"),
        (b"hello, I am no model", "is not an ONNX model"),
        (b"\x20\x00\x00\x00ORTM\x00\x00\x00\x00", "is in ORT format"),
        (onnx.ModelProto().SerializeToString(), "is not an ONNX model"),
    ],
)
def test_foreign_content(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=problem) as caught:
        import_model(path)
    assert caught.value.subject == str(path) and caught.value.hint


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such file"):
        import_model(tmp_path / "absent.onnx")
    with pytest.raises(ModelError, match="is a folder"):
        import_model(tmp_path)


@given(st.integers(0, 400))
def test_truncated_model_is_a_model_error(length: int) -> None:
    data = weighted_model().SerializeToString()
    try:
        import_model(data[: min(length, len(data) - 1)])
    except ModelError:
        return


def test_external_data_is_read_beside_the_model(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(weighted_model(), path, save_as_external_data=True, location="m.data", size_threshold=0)
    weights = import_model(path).model.graph.initializers["w"].const_value
    assert weights is not None
    inline = import_model(weighted_model()).model.graph.initializers["w"].const_value
    assert inline is not None
    np.testing.assert_array_equal(weights.numpy(), inline.numpy())


def test_external_data_that_is_missing_or_short(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(weighted_model(), path, save_as_external_data=True, location="m.data", size_threshold=0)
    with pytest.raises(ModelError, match="give the model's path"):
        import_model(path.read_bytes())
    (tmp_path / "m.data").write_bytes(b"1234")
    with pytest.raises(ModelError, match=r"external data of 'w' in .*m\.data"):
        import_model(path)
    (tmp_path / "m.data").unlink()
    with pytest.raises(ModelError, match=r"external data of 'w' in .*m\.data"):
        import_model(path)


def test_graph_that_reads_what_nothing_makes() -> None:
    model = relu_model()
    model.graph.node[0].input[0] = "nowhere"
    with pytest.raises(ModelError, match="nowhere"):
        import_model(model)


def test_nodes_out_of_order_are_sorted() -> None:
    model = weighted_model()
    nodes = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend(reversed(nodes))
    assert [node.op_type for node in import_model(model).model.graph] == ["MatMul", "Relu"]
