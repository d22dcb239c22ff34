"""What the ladder climbs: named one-unit graphs, and the constructors that hypothesis draws from too."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from hexqdq.numerics import activation_params
from hexqdq.ops.unit import Array, Attribute, Clamp, QuantUnit, Tensor, UnitGraph
from hexqdq.qtypes import QType, QuantParams


@dataclass(frozen=True)
class Case:
    """A named input of an op's ladder."""

    name: str
    graph: UnitGraph

    @property
    def op_type(self) -> str:
        return self.graph.units[-1].op_type

    def __str__(self) -> str:
        return f"{self.op_type}-{self.name}"


@dataclass(frozen=True)
class Edge:
    """Type, scale and zero point of an activation."""

    dtype: QType = QType.U8
    scale: float = 0.05
    zero_point: int = 120

    @property
    def params(self) -> QuantParams:
        return QuantParams.per_tensor(self.dtype, self.scale, self.zero_point)

    def tensor(self, name: str, shape: tuple[int, ...]) -> Tensor:
        return Tensor(name, shape, self.dtype, self.params)


U8 = Edge()
S8 = Edge(QType.S8, 0.03, -7)
U8_LOW, U8_HIGH = Edge(QType.U8, 0.02, 0), Edge(QType.U8, 0.02, 255)
S8_LOW, S8_HIGH = Edge(QType.S8, 0.02, -128), Edge(QType.S8, 0.02, 127)
EDGES = (U8, S8, U8_LOW, U8_HIGH, S8_LOW, S8_HIGH)
RELU = Clamp(low=0.0)
RELU6 = Clamp(0.0, 6.0)


def graph_of(*units: QuantUnit, name: str = "ladder") -> UnitGraph:
    """The graph whose inputs nobody makes and whose outputs nobody takes."""
    made = {tensor.name for unit in units for tensor in unit.outputs}
    taken = {tensor.name for unit in units for tensor in unit.variable_inputs()}
    inputs = {t.name: t for unit in units for t in unit.variable_inputs() if t.name not in made}
    outputs = [tensor for unit in units for tensor in unit.outputs if tensor.name not in taken]
    return UnitGraph(name, tuple(inputs.values()), tuple(outputs), units)


def covering(low: float, high: float, dtype: QType) -> Edge:
    """An edge that covers a real range."""
    params = activation_params(low, high, dtype)
    return Edge(dtype, params.scale[0], params.zero_point[0])


def sum_edge(terms: int, scale: float, dtype: QType) -> Edge:
    """An output for sums of that many products of 8-bit values with product scale ``scale``; a few saturate."""
    reach = 3.0 * math.sqrt(terms) * 74.0 * 74.0 * scale
    return covering(-reach, 0.8 * reach, dtype)


@dataclass(frozen=True)
class Geometry:
    """A convolution's sizes; ``pads`` are ONNX's (top, left, bottom, right); a flat one has a width only.

    ``grown`` is a ConvTranspose's output padding.
    """

    channels: int = 8
    filters: int = 16
    size: tuple[int, int] = (6, 6)
    kernel: tuple[int, int] = (3, 3)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    strides: tuple[int, int] = (1, 1)
    group: int = 1
    batch: int = 1
    dilations: tuple[int, int] = (1, 1)
    grown: tuple[int, int] = (0, 0)
    flat: bool = False

    @property
    def spans(self) -> tuple[int, int]:
        """The kernel's reach with its holes."""
        height, width = ((size - 1) * step + 1 for size, step in zip(self.kernel, self.dilations, strict=True))
        return height, width

    @property
    def output_size(self) -> tuple[int, int]:
        """Height and width as ONNX floors them."""
        height, width = (
            (size + self.pads[axis] + self.pads[axis + 2] - span) // stride + 1
            for axis, (size, span, stride) in enumerate(zip(self.size, self.spans, self.strides, strict=True))
        )
        return height, width

    @property
    def transposed_size(self) -> tuple[int, int]:
        """Height and width of a ConvTranspose's output."""
        height, width = (
            (size - 1) * self.strides[axis]
            + self.spans[axis]
            + self.grown[axis]
            - self.pads[axis]
            - self.pads[axis + 2]
            for axis, size in enumerate(self.size)
        )
        return height, width

    def spatial(self, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """Every second size where the geometry is flat: the width's."""
        return sizes[1::2] if self.flat else sizes

    @property
    def attributes(self) -> Mapping[str, Attribute]:
        return {
            "kernel_shape": self.spatial(self.kernel),
            "pads": self.spatial(self.pads),
            "strides": self.spatial(self.strides),
            "dilations": self.spatial(self.dilations),
            "group": self.group,
        }


@dataclass(frozen=True)
class Style:
    """How a contraction is quantized; ``weight_zero_points`` are shared or repeat over channels."""

    source: Edge = U8
    result: Edge | None = None
    per_channel: bool = True
    bias: bool = True
    clamp: Clamp | None = None
    seed: int = 0
    extreme: bool = False
    weight_scale: float = 0.01
    weight_dtype: QType = QType.S8
    weight_zero_points: tuple[int, ...] = (0,)
    float_bias: bool = False
    bias_steps: float = 1.0
    rng: np.random.Generator = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rng", np.random.default_rng(self.seed))

    def weights(self, shape: tuple[int, ...]) -> Array:
        """Random weights; only the ends of the range where ``extreme``."""
        low, high = self.weight_dtype.low, self.weight_dtype.high
        if self.extreme:
            return self.rng.choice(np.array([low, high], self.weight_dtype.numpy), shape)
        symmetric = self.weight_dtype is QType.S8 and self.weight_zero_points == (0,)
        return self.rng.integers(low + symmetric, high + 1, shape).astype(self.weight_dtype.numpy)

    def weight_params(self, channels: int, axis: int) -> QuantParams:
        if not self.per_channel:
            return QuantParams.per_tensor(self.weight_dtype, self.weight_scale, self.weight_zero_points[0])
        scales = (self.weight_scale * self.rng.uniform(0.4, 1.0, channels)).astype(np.float32)
        return QuantParams.per_channel(self.weight_dtype, scales, np.resize(self.weight_zero_points, channels), axis)

    def bias_tensor(self, name: str, channels: int, weight: QuantParams) -> tuple[Tensor, Array]:
        """A bias of scale input x weight within a few thousand steps, or of that scale times ``bias_steps``."""
        scales = np.float32(self.source.params.scale[0]) * np.broadcast_to(weight.scales(), (channels,))
        values = self.rng.integers(-4000, 4001, channels)
        if self.float_bias:
            return Tensor(name, (channels,), QType.F32), (values * scales).astype(np.float32)
        scales = scales * np.float32(self.bias_steps)
        params = QuantParams.per_channel(QType.S32, scales, np.zeros(channels, np.int64), 0)
        return Tensor(name, (channels,), QType.S32, params), (values / self.bias_steps).astype(np.int32)

    def output(self, terms: int) -> Edge:
        """The given output edge, or one that fits sums of ``terms`` products."""
        return self.result or sum_edge(terms, self.source.scale * self.weight_scale * 0.7, self.source.dtype)


def contraction_unit(
    op_type: str,
    tensors: tuple[Tensor, Tensor],
    weight: tuple[Array, QuantParams],
    style: Style,
    attributes: Mapping[str, Attribute],
) -> QuantUnit:
    """A unit from its input and output, constant weights and a bias as the style says."""
    source, result = tensors
    values, params = weight
    prefix = result.name
    inputs = [source, Tensor(f"{prefix}_w", values.shape, params.dtype, params)]
    constants = {f"{prefix}_w": values}
    if style.bias:
        channels = result.shape[1] if op_type in ("Conv", "ConvTranspose") else result.shape[-1]
        tensor, bias = style.bias_tensor(f"{prefix}_b", channels, params)
        inputs.append(tensor)
        constants[tensor.name] = bias
    return QuantUnit(f"{prefix}_unit", op_type, tuple(inputs), (result,), attributes, constants, style.clamp)


def conv_unit(geometry: Geometry, style: Style, names: tuple[str, str] = ("x", "y")) -> QuantUnit:
    """A Conv."""
    g = geometry
    values = style.weights((g.filters, g.channels // g.group, *g.spatial(g.kernel)))
    params = style.weight_params(g.filters, 0)
    source = style.source.tensor(names[0], (g.batch, g.channels, *g.spatial(g.size)))
    result = style.output(values[0].size).tensor(names[1], (g.batch, g.filters, *g.spatial(g.output_size)))
    return contraction_unit("Conv", (source, result), (values, params), style, g.attributes)


def conv_transpose_unit(geometry: Geometry, style: Style) -> QuantUnit:
    """A ConvTranspose."""
    g = geometry
    values = style.weights((g.channels, g.filters, *g.spatial(g.kernel)))
    params = style.weight_params(g.filters, 1)
    source = style.source.tensor("x", (g.batch, g.channels, *g.spatial(g.size)))
    result = style.output(values[:, 0].size).tensor("y", (g.batch, g.filters, *g.spatial(g.transposed_size)))
    attributes = {**g.attributes, "output_padding": g.spatial(g.grown)}
    return contraction_unit("ConvTranspose", (source, result), (values, params), style, attributes)


def matmul_unit(
    shape: tuple[int, ...], columns: int, style: Style, op_type: str = "MatMul", trans_b: int = 0
) -> QuantUnit:
    """A MatMul or Gemm with constant weights."""
    depth = shape[-1]
    values = style.weights((columns, depth) if trans_b else (depth, columns))
    params = style.weight_params(columns, 0 if trans_b else 1)
    result = style.output(depth).tensor("y", (*shape[:-1], columns))
    attributes: dict[str, Attribute] = {}
    if op_type == "Gemm":
        attributes = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": trans_b}
    tensors = (style.source.tensor("x", shape), result)
    return contraction_unit(op_type, tensors, (values, params), style, attributes)


def product_unit(left: Tensor, right: Tensor, constants: Mapping[str, Array] | None = None) -> QuantUnit:
    """A MatMul of two activations, computed unless ``constants`` names them."""
    assert left.params is not None and right.params is not None
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    shape = (*batch, left.shape[-2], right.shape[-1])
    result = sum_edge(left.shape[-1], left.params.scale[0] * right.params.scale[0], left.dtype).tensor("y", shape)
    return QuantUnit("y_unit", "MatMul", (left, right), (result,), {}, constants or {})


def unary_unit(
    op_type: str,
    source: Tensor,
    result: Tensor,
    attributes: Mapping[str, Attribute] | None = None,
    clamp: Clamp | None = None,
) -> QuantUnit:
    """A unit of one input and one output."""
    return QuantUnit(f"{result.name}_unit", op_type, (source,), (result,), attributes or {}, {}, clamp)


def add_unit(left: Tensor, right: Tensor, result: Edge, clamp: Clamp | None = None, name: str = "y") -> QuantUnit:
    """An Add of two computed tensors."""
    shape = np.broadcast_shapes(left.shape, right.shape)
    return QuantUnit(f"{name}_unit", "Add", (left, right), (result.tensor(name, shape),), {}, {}, clamp)


def feeds_of(graph: UnitGraph, seed: int = 0) -> list[dict[str, Array]]:
    """Random integers over the whole type, both ends, and ends mixed."""
    rng = np.random.default_rng(seed)

    def drawn(tensor: Tensor, kind: str) -> Array:
        low, high = tensor.dtype.low, tensor.dtype.high
        if kind == "random":
            return rng.integers(low, high + 1, tensor.shape).astype(tensor.dtype.numpy)
        if kind == "ends":
            return rng.choice(np.array([low, high], tensor.dtype.numpy), tensor.shape)
        return np.full(tensor.shape, low if kind == "low" else high, tensor.dtype.numpy)

    return [{t.name: drawn(t, kind) for t in graph.inputs} for kind in ("random", "low", "high", "ends")]
