"""Hand-written TOSA segments, each with every argument drawn from a seed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import prod

import numpy as np

from hexqdq.compile.product import TosaSegment
from hexqdq.ops.unit import Array, Tensor
from hexqdq.qtypes import QType

KINDS = {"i8": np.int8, "i16": np.int16, "i32": np.int32}
EDGES = {"i8": QType.U8, "i16": QType.S16, "i32": QType.S32}


@dataclass
class Writer:
    """Lines of one function; values are (name, shape, element)."""

    name: str = "segment"
    lines: list[str] = field(default_factory=list)
    inputs: list[Tensor] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    constants: list[tuple[str, Array]] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)

    def input(self, shape: tuple[int, ...], element: str = "i8", edge: QType | None = None) -> str:
        name = f"%x{len(self.inputs)}"
        self.inputs.append(Tensor(name[1:], shape, edge or EDGES[element]))
        return self._typed(name, shape, element)

    def constant(self, values: Array, element: str) -> str:
        """An argument with values; all inputs must exist already."""
        name = f"%c{len(self.constants)}"
        self.constants.append((name[1:], values.astype(KINDS[element])))
        self.arguments.append(name)
        return self._typed(name, values.shape, element)

    def _typed(self, name: str, shape: tuple[int, ...], element: str) -> str:
        self.types[name] = f"tensor<{'x'.join(map(str, shape))}x{element}>"
        return name

    def literal(self, values: object, element: str, shape: tuple[int, ...] = (1,)) -> str:
        """A tosa.const."""
        name = self._typed(f"%l{len(self.lines)}", shape, element)
        self.lines.append(
            f'{name} = "tosa.const"() {{values = dense<{values}> : {self.types[name]}}} : () -> {self.types[name]}'
        )
        return name

    def shape(self, values: tuple[int, ...]) -> str:
        name = f"%l{len(self.lines)}"
        self.types[name] = f"!tosa.shape<{len(values)}>"
        text = f"dense<{list(values)}> : tensor<{len(values)}xindex>"
        self.lines.append(f"{name} = tosa.const_shape {{values = {text}}} : () -> {self.types[name]}")
        return name

    def op(self, op: str, operands: list[str], shape: tuple[int, ...], element: str, attributes: str = "") -> str:
        name = self._typed(f"%l{len(self.lines)}", shape, element)
        types = ", ".join(self.types[operand] for operand in operands)
        attributes = f" {{{attributes}}}" if attributes else ""
        self.lines.append(f"{name} = tosa.{op} {', '.join(operands)}{attributes} : ({types}) -> {self.types[name]}")
        return name

    def shape_of(self, name: str) -> tuple[int, ...]:
        return tuple(map(int, re.findall(r"(\d+)x", self.types[name])))

    def rescale(self, value: str, multipliers: list[int], shift: int, zero_points: tuple[int, int], to: str) -> str:
        """SINGLE_ROUND, per channel where there is more than one multiplier."""
        source = self.types[value].split("x")[-1].rstrip(">")
        count = (len(multipliers),)
        wide = max(multipliers) > 32767
        operands = [
            value,
            self.literal(multipliers, "i32" if wide else "i16", count),
            self.literal([shift] * len(multipliers), "i8", count),
            self.literal(zero_points[0], source),
            self.literal(zero_points[1], to),
        ]
        attributes = (
            f"scale32 = {str(wide).lower()}, rounding_mode = SINGLE_ROUND, per_channel = {str(count[0] > 1).lower()}, "
            "input_unsigned = false, output_unsigned = false"
        )
        return self.op("rescale", operands, self.shape_of(value), to, attributes)

    def reshape(self, value: str, shape: tuple[int, ...]) -> str:
        element = self.types[value].split("x")[-1].rstrip(">")
        return self.op("reshape", [value, self.shape(shape)], shape, element)

    def segment(self, *results: str, edges: tuple[QType, ...] = ()) -> TosaSegment:
        """The finished segment; output edges are unsigned where nothing else is said."""
        names = [f"%{tensor.name}" for tensor in self.inputs] + self.arguments
        arguments = ", ".join(f"{name}: {self.types[name]}" for name in names)
        types = ", ".join(self.types[result] for result in results)
        body = "\n  ".join([*self.lines, f"return {', '.join(results)} : {types}"])
        text = f"func.func @{self.name}({arguments}) -> ({types}) {{\n  {body}\n}}\n"
        kinds = edges or tuple(EDGES[self.types[result].split("x")[-1].rstrip(">")] for result in results)
        outputs = tuple(
            Tensor(f"y{i}", self.shape_of(r), k) for i, (r, k) in enumerate(zip(results, kinds, strict=True))
        )
        return TosaSegment(self.name, text, tuple(self.inputs), outputs, tuple(self.constants))


@dataclass(frozen=True)
class Conv:
    """A convolution with its rescale; ``depthwise`` has ``filters`` as channel multiplier."""

    size: tuple[int, int] = (8, 8)
    channels: int = 8
    filters: int = 16
    kernel: int = 3
    stride: int = 1
    pad: int = 1
    dilation: int = 1
    zero_point: int = 3
    weight_zero_point: int = 0
    depthwise: bool = False
    edge: QType = QType.U8
    shift: int = 30
    batch: int = 1

    @property
    def spatial(self) -> tuple[int, ...]:
        reach = (self.kernel - 1) * self.dilation + 1
        return tuple((size + 2 * self.pad - reach) // self.stride + 1 for size in self.size)


def conv_of(writer: Writer, value: str, case: Conv, seed: int = 0) -> str:
    """The convolution of an i8 value, rescaled to i8."""
    rng = np.random.default_rng(seed)
    k, outputs = case.kernel, case.channels * case.filters if case.depthwise else case.filters
    shape = (k, k, case.channels, case.filters) if case.depthwise else (case.filters, k, k, case.channels)
    weights = writer.constant(rng.integers(-128, 128, shape), "i8")
    bias = writer.constant(rng.integers(-4000, 4000, outputs), "i32")
    zero_points = [writer.literal(case.zero_point, "i8"), writer.literal(case.weight_zero_point, "i8")]
    attributes = (
        f"acc_type = i32, dilation = array<i64: {case.dilation}, {case.dilation}>, "
        f"pad = array<i64: {case.pad}, {case.pad}, {case.pad}, {case.pad}>, "
        f"stride = array<i64: {case.stride}, {case.stride}>"
    )
    result = (case.batch, *case.spatial, outputs)
    name = "depthwise_conv2d" if case.depthwise else "conv2d"
    sums = writer.op(name, [value, weights, bias, *zero_points], result, "i32", attributes)
    terms = k * k * (1 if case.depthwise else case.channels)
    # sums of random products have a deviation of about 74 * 74 * sqrt(terms); spread them over the 8 bits
    scale = 40 / (74 * 74 * terms**0.5) * 2.0**case.shift
    multipliers = [int(scale * factor) for factor in rng.uniform(0.5, 1.0, outputs)]
    return writer.rescale(sums, multipliers, case.shift, (0, -5), "i8")


def conv_segment(case: Conv) -> TosaSegment:
    writer = Writer()
    value = writer.input((case.batch, *case.size, case.channels), "i8", case.edge)
    return writer.segment(conv_of(writer, value, case), edges=(case.edge,))


def feeds_for(segment: TosaSegment, seed: int = 0) -> list[Array]:
    """A value per input, over the whole range of its type."""
    rng = np.random.default_rng(seed)
    return [
        rng.integers(t.dtype.low, t.dtype.high, t.shape, endpoint=True).astype(t.dtype.numpy) for t in segment.inputs
    ]


def flat(shape: tuple[int, ...]) -> tuple[int, int]:
    return (1, prod(shape))
