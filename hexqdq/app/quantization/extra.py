"""``extra_options`` of onnxruntime.quantization: what each key asks for here, or what to use instead."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hexqdq.app.quantization.types import our_type
from hexqdq.errors import UsageError
from hexqdq.qtypes import QType
from hexqdq.quantize.observers.base import Range
from hexqdq.quantize.overrides import ACTIVATION_TYPES, WEIGHT_TYPES, Override


@dataclass(frozen=True)
class Request:
    """What the options ask for besides the arguments.

    ``method`` and ``percentile`` stand above those of the calibration method; ``symmetric`` ranges reach
    as far down as up, ``restricted`` ones where they hold values below 0; a range spans
    ``smallest_span`` at least; ``tensors`` are the overrides of single ones as they were given;
    ``only_constant_weights`` leaves a MatMul of two activations float; 4-bit weights of matrices have a
    scale per ``block`` elements unless that is 0; ``smooth`` moves scales of activations into weights.
    """

    method: str | None = None
    percentile: float | None = None
    symmetric: bool = False
    restricted: bool = False
    smallest_span: float = 0.0
    tensors: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    only_constant_weights: bool = False
    block: int = 0
    smooth: bool = True

    def ranges(self, found: Mapping[str, Range]) -> dict[str, Range]:
        """The calibrated ranges as asked for."""
        return {name: self._range(self.tensors.get(name, {}), *ends) for name, ends in found.items()}

    def _range(self, override: Mapping[str, Any], low: float, high: float) -> Range:
        low, high = override.get("rmin", low), override.get("rmax", high)
        if self.symmetric or override.get("symmetric") or (self.restricted and low < 0):
            high = max(abs(low), abs(high))
            low = -high
        return low, max(high, low + self.smallest_span)

    def overrides(self, default: QType, constants: Collection[str]) -> tuple[Override, ...]:
        """What the recipe is told of single tensors, ``constants`` of which are weights; ``default`` is their type."""
        return tuple(one for name, held in self.tensors.items() for one in _override(name, held, default, constants))


def _override(name: str, held: Mapping[str, Any], default: QType, constants: Collection[str]) -> Iterator[Override]:
    subject = f"extra option 'TensorQuantOverrides' of {name!r}"
    if name in constants:
        if set(held) != {"quant_type"}:
            raise UsageError(subject, f"says {', '.join(held)} of weights; expected quant_type alone", OVERRIDES)
        yield Override(tensor=name, weights=our_type(subject, held["quant_type"], WEIGHT_TYPES))
        return
    dtype = our_type(subject, held["quant_type"], ACTIVATION_TYPES) if "quant_type" in held else default
    if "scale" in held:
        scale, zero_point = float(held["scale"]), int(held["zero_point"])
        low, high = ((end - zero_point) * scale for end in (dtype.low, dtype.high))
        yield Override(tensor=name, low=low, high=high)
    elif "rmin" in held and "rmax" in held and not held.get("symmetric"):
        yield Override(tensor=name, low=float(held["rmin"]), high=float(held["rmax"]))
    if "quant_type" in held:
        yield Override(tensor=name, activations=dtype)


@dataclass(frozen=True)
class Option:
    """One key. Values in ``neutral`` ask for what hexqdq does anyway; others go to ``apply``, or are refused."""

    neutral: tuple[Any, ...]
    instead: str = ""
    apply: Callable[[Request, Any], Request] | None = None


def request_of(extra_options: Mapping[str, Any] | None) -> Request:
    """What the options ask for; raises UsageError for an unknown key and for what is not done, by name."""
    request = Request()
    for name, value in (extra_options or {}).items():
        subject = f"extra option {name!r}"
        option = OPTIONS.get(name)
        if option is None:
            raise UsageError(subject, f"is unknown; expected one of {', '.join(OPTIONS)}", "correct or remove it")
        if any(value is neutral or value == neutral for neutral in option.neutral):
            continue
        if option.apply is None:
            raise UsageError(subject, f"is {value!r}, which is not supported", option.instead)
        request = option.apply(request, value)
    return request


def _set(name: str) -> Callable[[Request, Any], Request]:
    return lambda request, value: replace(request, **{name: value})


def _percentile(request: Request, value: Any) -> Request:
    return replace(request, percentile=_number("CalibPercentile", value))


def _smallest_span(request: Request, value: Any) -> Request:
    return replace(request, smallest_span=_number("MinimumRealRange", value))


def _number(option: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise UsageError(f"extra option {option!r}", f"is {value!r}; expected a number from 0 on", "correct it")
    return float(value)


def _overrides(request: Request, value: Any) -> Request:
    """Checks what is said of single tensors; what it comes to is known with the model."""
    tensors = {}
    for tensor, entries in value.items():
        subject = f"extra option 'TensorQuantOverrides' of {tensor!r}"
        if len(entries) != 1:
            raise UsageError(
                subject, f"holds {len(entries)} dictionaries; expected one", "leave scales per channel out"
            )
        (entry,) = entries
        for key in entry:
            if key not in TENSOR_KEYS:
                known = f"expected one of {', '.join(TENSOR_KEYS)}"
                raise UsageError(subject, f"says {key!r}, which is not supported; {known}", OVERRIDES)
        if ("scale" in entry) != ("zero_point" in entry):
            raise UsageError(subject, "says one of scale and zero_point; expected both", "give both")
        tensors[tensor] = {key: plain for key, plain in entry.items() if plain is not None}
    return replace(request, tensors=tensors)


TENSOR_KEYS = ("quant_type", "scale", "zero_point", "rmin", "rmax", "symmetric")
OVERRIDES = "leave it out, or see the overrides of hexqdq.Recipe"
ANY = (True, False, None)
OFF = (False, None)
ON = (True, None)
OPTIONS: dict[str, Option] = {
    "ActivationSymmetric": Option(OFF, apply=_set("symmetric")),
    "ActivationRestrictedAsymmetric": Option(OFF, apply=_set("restricted")),
    "AddQDQPairToWeight": Option(OFF, "weights are stored as integers behind a DQ; leave it out"),
    "BlockSize": Option((0, None), apply=_set("block")),
    "CalibMaxIntermediateOutputs": Option(ANY, apply=lambda request, _: request),  # memory holds one sample anyway
    "CalibMovingAverage": Option(OFF, apply=lambda request, _: replace(request, method="average")),
    "CalibMovingAverageConstant": Option((None,), "every sample weighs the same in CalibMovingAverage; leave it out"),
    "CalibPercentile": Option((None,), apply=_percentile),
    "CalibStridedMinMax": Option(ANY, apply=lambda request, _: request),  # the same ranges in less memory
    "CalibTensorRangeSymmetric": Option(OFF, apply=_set("symmetric")),
    "DedicatedQDQPair": Option(OFF, "readers share a tensor's pair, and runtimes take them apart; leave it out"),
    "DefaultTensorType": Option((None, 1), "shapes and types are inferred; leave it out"),
    "EnableSubgraph": Option(OFF, "inner graphs of If and Loop stay float; leave it out"),
    "ForceQuantizeNoInputCheck": Option(ANY),  # data movements are quantized where their neighbours are
    "MatMulConstBOnly": Option(OFF, apply=_set("only_constant_weights")),
    "MinimumRealRange": Option((None, 0), apply=_smallest_span),
    "OpTypesToExcludeOutputQuantization": Option(([], (), None), "exclude whole nodes by nodes_to_exclude"),
    "QDQDisableWeightAdjustForInt32Bias": Option(OFF, "biases that overflow 32 bits give wrong results; leave it out"),
    "QDQKeepRemovableActivations": Option(ANY),  # Relu and Clip are always kept
    "QDQOpTypePerChannelSupportToAxis": Option(({}, None), "scales lie along output channels; leave it out"),
    "QuantizeBias": Option(ON, "an NPU adds biases as integers; leave it out"),
    "SmoothQuant": Option(ON, apply=_set("smooth")),
    "SmoothQuantAlpha": Option((None,), "each tensor gets the exponent that suits it; leave it out"),
    "SmoothQuantFolding": Option(ANY),
    "TensorQuantOverrides": Option(({}, None), apply=_overrides),
    "UseQDQContribOps": Option(OFF, "the standard's ops hold 16 and 4 bits from opset 21 on; leave it out"),
    "WeightSymmetric": Option(ON, "weights are symmetric; leave it out"),
    "extra.Sigmoid.nnapi": Option(ANY),  # Sigmoid always has scale 1/256
}
