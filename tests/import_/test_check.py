"""Models that parse but are not whole: each is refused by the node or constant at fault."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from hexqdq.errors import HexqdqError, ModelError
from hexqdq.import_.pipeline import import_model


def model() -> onnx.ModelProto:
    """y = Relu(x * s)."""
    nodes = [helper.make_node("Mul", ["x", "s"], ["m"], "mul"), helper.make_node("Relu", ["m"], ["y"], "relu")]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in ("x", "y")]
    constant = numpy_helper.from_array(np.arange(4, dtype=np.float32), "s")
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], [constant])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def unknown_opset(made: onnx.ModelProto) -> None:
    made.opset_import[0].version = 999


def foreign_domain(made: onnx.ModelProto) -> None:
    made.graph.node[1].domain = "my.ops"


def short_constant(made: onnx.ModelProto) -> None:
    made.graph.initializer[0].raw_data = b"\0\0\0"


def long_constant(made: onnx.ModelProto) -> None:
    made.graph.initializer[0].raw_data += bytes(8)


def other_type(made: onnx.ModelProto) -> None:
    made.graph.initializer[0].data_type = TensorProto.INT64


def one_input(made: onnx.ModelProto) -> None:
    del made.graph.node[0].input[1]


def empty_input(made: onnx.ModelProto) -> None:
    made.graph.node[0].input[1] = ""


def many_inputs(made: onnx.ModelProto) -> None:
    made.graph.node[1].input.append("x")


def no_outputs(made: onnx.ModelProto) -> None:
    made.graph.node.append(helper.make_node("Relu", ["x"], [], "void"))


def later_op(made: onnx.ModelProto) -> None:
    made.graph.node[1].op_type = "Swish"


FAULTS: dict[str, tuple[Callable[[onnx.ModelProto], None], tuple[str, ...]]] = {
    "unknown opset": (unknown_opset, ("opset 999", "expected at most")),
    "foreign domain": (foreign_domain, ("'relu'", "'my.ops'", "not imported")),
    "short constant": (short_constant, ("constant 's'",)),
    "long constant": (long_constant, ("constant 's'",)),
    "other type": (other_type, ("constant 's'", "INT64")),
    "one input": (one_input, ("'mul' (Mul) has 1 inputs; expected 2 to 2",)),
    "empty input": (empty_input, ("'mul' (Mul) has no input 'B'",)),
    "many inputs": (many_inputs, ("'relu' (Relu) has 2 inputs; expected 1 to 1",)),
    "no outputs": (no_outputs, ("'void' (Relu) has no outputs",)),
    "later op": (later_op, ("'relu' (Swish) is not in ONNX opset 17",)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_fault_is_named(fault: str) -> None:
    spoil, words = FAULTS[fault]
    made = model()
    import_model(made, None)
    spoil(made)
    with pytest.raises(ModelError) as raised:
        import_model(made, None)
    assert all(word in str(raised.value) for word in words), str(raised.value)
    assert raised.value.hint


def test_flipped_bytes_are_told_or_harmless(run_all: bool) -> None:
    """No fault in a file may show as a fault of hexqdq."""
    data, random = model().SerializeToString(), np.random.default_rng(0)
    for _ in range(20000 if run_all else 500):
        spoiled = bytearray(data)
        for place in random.integers(0, len(data), random.integers(1, 6)):
            spoiled[place] = random.integers(256)
        try:
            import_model(bytes(spoiled), None)
        except HexqdqError as error:
            assert error.exit_code == 1, error


def test_texts_stay_as_they_are() -> None:
    made = model()
    made.graph.initializer.append(numpy_helper.from_array(np.array(["a", "bc"], object), "t"))
    made.graph.node.append(helper.make_node("Identity", ["t"], ["u"], "copy"))
    made.graph.output.append(helper.make_tensor_value_info("u", TensorProto.STRING, [2]))
    first = import_model(made, None).digest
    made.graph.initializer[-1].string_data[1] = b"bd"
    assert import_model(made, None).digest != first
