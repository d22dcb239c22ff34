"""Dynamic dimensions come from the user, and what is missing is named."""

from __future__ import annotations

import pytest

from hexqdq.errors import ModelError
from hexqdq.import_.pipeline import import_model
from tests.import_.models import parse

TWO_INPUTS = "m (float[batch,4] x, float[batch,4] y) => (float[batch,4] z) { z = Add(x, y) }"


def test_missing_shape_names_input_shape_and_option() -> None:
    with pytest.raises(ModelError) as caught:
        import_model(parse(TWO_INPUTS))
    assert caught.value.subject == "input 'x'"
    assert "batchx4" in caught.value.problem
    assert "--input-shape x:batchx4" in caught.value.hint


def test_given_shape_reaches_every_value() -> None:
    model = import_model(parse(TWO_INPUTS), {"x": (3, 4)}).model
    assert [tuple(value.shape or ()) for value in (*model.graph.inputs, *model.graph.outputs)] == [(3, 4)] * 3


@pytest.mark.parametrize(
    "given, problem",
    [
        ({"nope": (1, 4)}, "the model has no such input; it has x, y"),
        ({"x": (3, 5)}, "has shape batchx4; --input-shape gives 3x5"),
        ({"x": (3,)}, "--input-shape gives 3"),
        ({"x": (0, 4)}, "--input-shape gives 0x4"),
        ({"x": (3, 4), "y": (2, 4)}, "shape inference"),
    ],
)
def test_wrong_shape(given: dict[str, tuple[int, ...]], problem: str) -> None:
    with pytest.raises(ModelError) as caught:
        import_model(parse(TWO_INPUTS), given)
    assert problem in str(caught.value)


def test_shape_of_a_static_input_may_be_repeated() -> None:
    model = parse("m (float[1,4] x) => (float[1,4] y) { y = Relu(x) }")
    assert import_model(model, {"x": (1, 4)}).digest == import_model(model).digest


def test_value_whose_shape_depends_on_data_is_refused_by_name() -> None:
    model = parse("m (float[4] x) => (int64[1,n] y) { y = NonZero(x) }")
    with pytest.raises(ModelError, match=r"value 'y' of node 'NonZero_y' \(NonZero\) has no static shape"):
        import_model(model)
