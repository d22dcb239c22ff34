"""TOSA text that somebody gives: every operation that is said to lower does, all else is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import numpy as np
import pytest

from hexqdq.compile.given.beside import joined, packed
from hexqdq.compile.given.check import OPS
from hexqdq.compile.given.read import read_tosa
from hexqdq.compile.pipeline import compile_segment
from hexqdq.context.executors.host import HostExecutor
from hexqdq.errors import HexqdqError, ModelError, UnsupportedError
from hexqdq.qtypes import QType
from hexqdq.target import host_targets
from tests.compile.segments import Conv, Writer, conv_segment, feeds_for
from tests.ops.stages.tosa_model import TosaModel

SHAPE = (1, 4, 6, 5)
WINDOW = "kernel = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 2, 2>"
CONV = "acc_type = i32, dilation = array<i64: 1, 1>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>"
OUT = "acc_type = i32, out_pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 2, 2>"

Make = Callable[[Writer], str]


def two(op: str, to: str = "i32", low: int = -300, element: str = "i32") -> Make:
    """A binary operation on two words made of bytes."""

    def make(writer: Writer) -> str:
        words = [wide(writer, writer.input(SHAPE, edge=QType.S8), low) for _ in range(2)]
        shift = [writer.literal(0, "i8")] if op == "mul" else []
        attributes = "round = true" if op == "arithmetic_right_shift" else ""
        return writer.op(op, [*words, *shift], SHAPE, to, attributes)

    return make


def wide(writer: Writer, value: str, low: int) -> str:
    """A byte as a word from ``low`` on; of few values where it is to be a shift or a divisor."""
    bound = f"min_val = {max(low, -128)} : i8, max_val = {127 if low < 0 else low + 17} : i8"
    return writer.op("cast", [writer.op("clamp", [value], SHAPE, "i8", bound)], SHAPE, "i32")


def one(op: str, shape: tuple[int, ...] = SHAPE, attributes: str = "") -> Make:
    return lambda writer: writer.op(
        op, [wide(writer, writer.input(SHAPE, edge=QType.S8), -300)], shape, "i32", attributes
    )


def moved(op: str, shape: tuple[int, ...], attributes: str = "", *sizes: tuple[int, ...]) -> Make:
    """A movement of bytes."""

    def make(writer: Writer) -> str:
        value = writer.input(SHAPE, edge=QType.S8)
        return writer.op(op, [value, *map(writer.shape, sizes)], shape, "i8", attributes)

    return make


def flags(op: str, count: int = 2) -> Make:
    """An operation on comparisons, turned into bytes."""

    def make(writer: Writer) -> str:
        left, right = (writer.input(SHAPE, edge=QType.S8) for _ in range(2))
        words = [writer.op("cast", [item], SHAPE, "i32") for item in (left, right)]
        pair = [writer.op(name, words, SHAPE, "i1") for name in ("greater", "equal")]
        mixed = writer.op(op, pair[:count], SHAPE, "i1")
        return writer.op("select", [mixed, left, right], SHAPE, "i8")

    return make


def negate(writer: Writer) -> str:
    value = writer.input(SHAPE, edge=QType.S8)
    return writer.op("negate", [value, writer.literal(0, "i8"), writer.literal(0, "i8")], SHAPE, "i8")


def mean(writer: Writer) -> str:
    value = writer.input(SHAPE, edge=QType.S8)
    zero = [writer.literal(0, "i8"), writer.literal(0, "i8")]
    return writer.op("avg_pool2d", [value, *zero], (1, 2, 3, 5), "i8", f"acc_type = i32, {WINDOW}")


def transposed(writer: Writer) -> str:
    value = writer.input(SHAPE, edge=QType.S8)
    weights = writer.literal(np.arange(-30, 30).reshape(3, 2, 2, 5).tolist(), "i8", (3, 2, 2, 5))
    operands = [
        value,
        weights,
        writer.literal([5, -6, 7], "i32", (3,)),
        writer.literal(1, "i8"),
        writer.literal(0, "i8"),
    ]
    return writer.op("transpose_conv2d", operands, (1, 8, 12, 3), "i32", OUT)


def convolved(writer: Writer) -> str:
    value = writer.input(SHAPE, edge=QType.S8)
    weights = writer.literal(np.arange(-30, 30).reshape(3, 2, 2, 5).tolist(), "i8", (3, 2, 2, 5))
    operands = [
        value,
        weights,
        writer.literal([5, -6, 7], "i32", (3,)),
        writer.literal(1, "i8"),
        writer.literal(0, "i8"),
    ]
    return writer.rescale(writer.op("conv2d", operands, (1, 3, 5, 3), "i32", CONV), [20000, 30000, 1], 22, (0, 3), "i8")


def depthwise(writer: Writer) -> str:
    value = writer.input(SHAPE, edge=QType.S8)
    weights = writer.literal(np.arange(-10, 10).reshape(2, 2, 5, 1).tolist(), "i8", (2, 2, 5, 1))
    bias = writer.literal(9, "i32", (5,))
    operands = [value, weights, bias, writer.literal(1, "i8"), writer.literal(0, "i8")]
    return writer.op("depthwise_conv2d", operands, (1, 3, 5, 5), "i32", CONV)


def product(writer: Writer) -> str:
    value = writer.input((1, 4, 6), edge=QType.S8)
    weights = writer.literal(np.arange(-9, 9).reshape(1, 6, 3).tolist(), "i8", (1, 6, 3))
    return writer.op("matmul", [value, weights, writer.literal(2, "i8"), writer.literal(0, "i8")], (1, 4, 3), "i32")


def looked_up(writer: Writer) -> str:
    table = writer.literal(
        np.random.default_rng(1).permutation(256).astype(np.uint8).view(np.int8).tolist(), "i8", (256,)
    )
    return writer.op("table", [writer.input(SHAPE, edge=QType.S8), table], SHAPE, "i8")


def gathered(writer: Writer) -> str:
    value = writer.input(SHAPE, edge=QType.S8)
    places = writer.reshape(wide(writer, value, 0), (1, 120))
    table = writer.literal([[[number * 100] for number in range(21)]], "i32", (1, 21, 1))
    return writer.op("gather", [table, places], (1, 120, 1), "i32")


def padded(writer: Writer) -> str:
    operands = [writer.input(SHAPE, edge=QType.S8), writer.shape((0, 0, 1, 2, 0, 3, 0, 0)), writer.literal(-7, "i8")]
    return writer.op("pad", operands, (1, 7, 9, 5), "i8")


def joined_up(writer: Writer) -> str:
    values = [writer.input(SHAPE, edge=QType.S8) for _ in range(2)]
    return writer.op("concat", values, (1, 4, 12, 5), "i8", "axis = 2 : i32")


CASES: dict[str, Make] = {
    **{op: two(op) for op in ("add", "sub", "mul", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor")},
    "arithmetic_right_shift": two("arithmetic_right_shift", low=3),
    "logical_left_shift": two("logical_left_shift", low=3),
    "logical_right_shift": two("logical_right_shift", low=3),
    "intdiv": two("intdiv", low=3),
    **{op: one(op) for op in ("abs", "bitwise_not", "clz")},
    "cast": one("abs"),
    "const": convolved,
    "const_shape": moved("reshape", (20, 6), "", (20, 6)),
    "clamp": moved("clamp", SHAPE, "min_val = -50 : i8, max_val = 60 : i8"),
    "reduce_max": one("reduce_max", (1, 4, 1, 5), "axis = 2 : i32"),
    "reduce_min": one("reduce_min", (1, 4, 1, 5), "axis = 2 : i32"),
    "reduce_sum": one("reduce_sum", (1, 4, 1, 5), "axis = 2 : i32"),
    "reshape": moved("reshape", (20, 6), "", (20, 6)),
    "reverse": moved("reverse", SHAPE, "axis = 2 : i32"),
    "slice": moved("slice", (1, 2, 6, 4), "", (0, 1, 0, 1), (1, 2, 6, 4)),
    "tile": moved("tile", (2, 4, 12, 5), "", (2, 1, 2, 1)),
    "transpose": moved("transpose", (1, 6, 5, 4), "perms = array<i32: 0, 2, 3, 1>"),
    "max_pool2d": moved("max_pool2d", (1, 2, 3, 5), WINDOW),
    "argmax": lambda writer: writer.op(
        "argmax", [writer.input(SHAPE, edge=QType.S8)], (1, 4, 6), "i32", "axis = 3 : i32"
    ),
    "logical_and": flags("logical_and"),
    "logical_or": flags("logical_or"),
    "logical_xor": flags("logical_xor"),
    "logical_not": flags("logical_not", 1),
    "equal": flags("logical_or"),
    "greater": flags("logical_and"),
    "select": flags("logical_and"),
    "greater_equal": lambda writer: writer.op(
        "select",
        [two("greater_equal", "i1")(writer), *[writer.literal(number, "i8", SHAPE) for number in (3, -4)]],
        SHAPE,
        "i8",
    ),
    "negate": negate,
    "avg_pool2d": mean,
    "transpose_conv2d": transposed,
    "conv2d": convolved,
    "rescale": convolved,
    "depthwise_conv2d": depthwise,
    "matmul": product,
    "table": looked_up,
    "gather": gathered,
    "pad": padded,
    "concat": joined_up,
}


@pytest.mark.tosa
@pytest.mark.parametrize("op", sorted(OPS))
def test_what_is_said_to_lower_does(op: str) -> None:
    writer = Writer()
    written = writer.segment(CASES[op](writer), edges=(QType.S8,))
    given, names = read_tosa(written.text, "given.mlir")
    assert "tosa.const" not in names
    row = host_targets()[0]
    made = compile_segment(given, None, row, (row,))
    with closing(TosaModel(given)) as model, closing(HostExecutor().load(made)) as loaded:
        feeds = feeds_for(given, 3)
        (expected,) = model.run(feeds)
        (found,) = loaded.run(feeds)
        assert np.count_nonzero(found != expected) == 0


def body(lines: str, arguments: str = "%x: tensor<2x3xi8>", result: str = "tensor<2x3xi8>", name: str = "f") -> str:
    return f"func.func @{name}({arguments}) -> {result} {{\n{lines}\n}}\n"


RESCALE = """
%m = "tosa.const"() {{values = dense<{multiplier}> : tensor<1xi32>}} : () -> tensor<1xi32>
%s = "tosa.const"() {{values = dense<{shift}> : tensor<1xi8>}} : () -> tensor<1xi8>
%z = "tosa.const"() {{values = dense<0> : tensor<1xi8>}} : () -> tensor<1xi8>
%r = tosa.rescale %x, {given}, %s, %z, %z {{scale32 = true, rounding_mode = {rounding}, per_channel = false,
  input_unsigned = false, output_unsigned = false}}
  : (tensor<2x3xi8>, tensor<1xi32>, tensor<1xi8>, tensor<1xi8>, tensor<1xi8>) -> tensor<2x3xi8>
return %r : tensor<2x3xi8>
"""


def rescaled(given: str = "%m", shift: int = 30, multiplier: int = 1 << 30, rounding: str = "SINGLE_ROUND") -> str:
    return RESCALE.format(given=given, shift=shift, multiplier=multiplier, rounding=rounding)


COPY = "return %x : tensor<2x3xi8>"
FLOAT = "%r = tosa.add %x, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>\nreturn %r : tensor<2x3xf32>"
OPEN = "%r = tosa.abs %x : (tensor<?x3xi32>) -> tensor<?x3xi32>\nreturn %r : tensor<?x3xi32>"
NAMED = '{tosa.tensor_name = "image"}'

REFUSED = {
    "no MLIR": ("hello", "does not parse as MLIR"),
    "cut short": (body(rescaled())[:-40], "does not parse as MLIR"),
    "nothing": ("", "has 0 functions: none; expected one"),
    "two functions": (body(COPY) + body(COPY, name="g"), "has 2 functions: f, g; expected one"),
    "something beside": (body(COPY) + '"other.thing"() : () -> ()', "has other.thing beside functions"),
    "declaration": ("func.func private @f(tensor<2xi8>) -> tensor<2xi8>", "no body of one block"),
    "no result": ("func.func @f(%x: tensor<2xi8>) { return }", "returns nothing"),
    "another dialect": (
        body(f'%r = "other.op"(%x) : (tensor<2x3xi8>) -> tensor<2x3xi8>\n{COPY}'),
        "other.op, is not TOSA",
    ),
    "arith": (body(f"%r = arith.addi %x, %x : tensor<2x3xi8>\n{COPY}"), "operation 0, arith.addi, is not TOSA"),
    "float": (body(FLOAT, "%x: tensor<2x3xf32>", "tensor<2x3xf32>"), "operation 0, tosa.add, has tensor<2x3xf32>"),
    "float edge": (body("return %x : tensor<2xf16>", "%x: tensor<2xf16>", "tensor<2xf16>"), "arg0 is tensor<2xf16>"),
    "open dimension": (body(OPEN, "%x: tensor<?x3xi32>", "tensor<?x3xi32>"), "tosa.abs, has tensor<?x3xi32>"),
    "wide edge": (body("return %x : tensor<2xi64>", "%x: tensor<2xi64>", "tensor<2xi64>"), "arg0 is tensor<2xi64>"),
    "no lowering": (
        body(f"%r = tosa.identity %x : (tensor<2x3xi8>) -> tensor<2x3xi8>\n{COPY}"),
        "tosa.identity, is not among",
    ),
    "shift 1": (body(rescaled(shift=1)), "has the shift 1; expected 2..62"),
    "shift 63": (body(rescaled(shift=63)), "has the shift 63; expected 2..62"),
    "negative multiplier": (body(rescaled(multiplier=-5)), "has the multiplier -5"),
    "double rounding": (body(rescaled(rounding="DOUBLE_ROUND")), "expected SINGLE_ROUND"),
    "computed": (body(rescaled("%c"), "%x: tensor<2x3xi8>, %c: tensor<1xi32>"), "is computed; expected a tosa.const"),
    "same name": (
        f"func.func @f(%x: tensor<2xi8> {NAMED}) -> (tensor<2xi8> {NAMED}) {{ return %x : tensor<2xi8> }}",
        "image names several",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_everything_else_is_refused_by_name(case: str) -> None:
    text, said = REFUSED[case]
    with pytest.raises(HexqdqError) as raised:
        read_tosa(text, "given.mlir")
    assert isinstance(raised.value, ModelError | UnsupportedError)
    assert said in raised.value.problem and raised.value.subject == "given.mlir" and raised.value.hint


def test_names_come_from_attributes_else_from_places() -> None:
    arguments = f"%a: tensor<2xi8>, %b: tensor<3xi32> {NAMED}"
    results = '(tensor<3xi32>, tensor<2xi8> {tosa.tensor_name = "of all"})'
    text = body("return %b, %a : tensor<3xi32>, tensor<2xi8>", arguments, results, '"some/name"')
    segment, names = read_tosa(text, "given.mlir")
    assert [(t.name, t.shape, t.dtype) for t in (*segment.inputs, *segment.outputs)] == [
        ("arg0", (2,), QType.S8),
        ("image", (3,), QType.S32),
        ("result0", (3,), QType.S32),
        ("of all", (2,), QType.S8),
    ]
    assert segment.name == "some_name" and f"@{segment.name}(" in segment.text and names == ()


def test_weights_become_constants() -> None:
    writer = Writer()
    segment, _ = read_tosa(writer.segment(convolved(writer), edges=(QType.S8,)).text, "given.mlir")
    weights, bias = (values for _, values in segment.constants)
    assert weights.shape == (3, 2, 2, 5) and weights.reshape(-1).tolist() == list(range(-30, 30))
    assert bias.tolist() == [5, -6, 7] and len(segment.inputs) == 1


def test_what_was_dumped_comes_back_whole() -> None:
    segment = conv_segment(Conv())
    given, _ = read_tosa(segment.text, "00.tosa.mlir")
    assert len(given.inputs) == 1 + len(segment.constants)
    found = joined(given, segment.text, packed(segment), "00.tosa.npz")
    assert (found.text, found.inputs, found.outputs) == (segment.text, segment.inputs, segment.outputs)
    for (name, values), (wanted, expected) in zip(found.constants, segment.constants, strict=True):
        assert name == wanted and np.array_equal(values, expected)


@pytest.mark.parametrize(("data", "said"), [(b"no archive", "does not hold"), (None, "other shapes")])
def test_what_lies_beside_must_fit(data: bytes | None, said: str) -> None:
    segment = conv_segment(Conv())
    given, _ = read_tosa(segment.text, "00.tosa.mlir")
    with pytest.raises(ModelError, match=said):
        joined(given, segment.text, data or packed(conv_segment(Conv(filters=17))), "00.tosa.npz")
