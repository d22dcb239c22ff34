"""Ops that are quantized and that have no integer form yet: onnxruntime reads them between DQ and Q."""

from __future__ import annotations

from hexqdq.ops.traits import QuantRow, Trait

_FUNCTIONS = {
    "Ceil": "the next integer above",
    "Celu": "exponential below 0, smooth",
    "Elu": "exponential below 0",
    "Erf": "error function",
    "Floor": "the next integer below",
    "Gelu": "input times the normal distribution's share below it",
    "Log": "natural logarithm",
    "Mish": "input times the hyperbolic tangent of its softplus",
    "Reciprocal": "1 over the input",
    "Round": "the nearest integer",
    "Selu": "exponential below 0, scaled",
    "Shrink": "the input beyond a band around 0",
    "Sign": "-1, 0 or 1",
    "Softplus": "logarithm of 1 and the exponential",
    "Softsign": "input over 1 and its magnitude",
    "Sqrt": "square root",
    "Swish": "input times its logistic function",
    "ThresholdedRelu": "values above a threshold, else 0",
}
_OVER_AXES = {
    "CumSum": "running sums along an axis",
    "GlobalLpPool": "norm of each channel",
    "LRN": "the input over the squares of its neighbours in other channels",
    "LogSoftmax": "logarithm of the softmax",
    "LpNormalization": "the input over its norm along an axis",
    "LpPool": "norms over windows",
    "MeanVarianceNormalization": "mean 0 and variance 1 over axes",
    "ReduceL1": "sum of magnitudes over axes",
    "ReduceL2": "root of the sum of squares over axes",
    "ReduceLogSum": "logarithm of the sum over axes",
    "ReduceLogSumExp": "logarithm of the sum of exponentials over axes",
    "ReduceProd": "product over axes",
    "ReduceSum": "sum over axes",
    "ReduceSumSquare": "sum of squares over axes",
}
_PAIRS = {
    "Div": "quotient of two tensors",
    "GridSample": "elements at computed places, interpolated",
    "Mod": "remainder of two tensors",
    "Pow": "one tensor to the power of another",
}
_VARIADIC = {
    "Einsum": "products of tensors summed over named axes",
    "Max": "the largest of tensors, element by element",
    "Mean": "the mean of tensors, element by element",
    "Min": "the smallest of tensors, element by element",
    "Sum": "the sum of tensors, element by element",
}
_MOVEMENTS = {
    "Compress": "chosen slices along an axis",
    "Expand": "elements repeated to a larger shape",
    "Gather": "slices at indices, computed ones too: an embedding's table is stored in the output's scale",
    "GatherElements": "elements at indices along an axis",
    "GatherND": "slices at several indices",
    "GlobalMaxPool": "the largest element of each channel",
    "ReduceMax": "the largest element over axes",
    "ReduceMin": "the smallest element over axes",
    "ReverseSequence": "parts of an axis in reverse",
    "Tile": "the tensor repeated along its axes",
    "Trilu": "one triangle, the rest 0",
}
_SCATTERS = {
    "ScatterElements": "elements at indices replaced",
    "ScatterND": "slices at indices replaced",
}
_COMPARISONS = {
    "Equal": "whether elements are equal",
    "Greater": "whether elements are above others",
    "GreaterOrEqual": "whether elements are not below others",
    "Less": "whether elements are below others",
    "LessOrEqual": "whether elements are not above others",
}
_QUESTIONS = {
    "ArgMin": "index of the smallest value",
    "Cast": "the value as an integer",
    "IsInf": "whether elements are infinite, which quantized ones never are",
    "IsNaN": "whether elements are no number, which quantized ones never are",
}
_NORMALIZATIONS = {
    "GroupNormalization": "groups of channels to mean 0 and variance 1, scaled and shifted",
    "InstanceNormalization": "channels to mean 0 and variance 1, scaled and shifted",
    "LayerNormalization": "the last axes to mean 0 and variance 1, scaled and shifted",
    "RMSNormalization": "the last axes over the root of their mean square, scaled",
}


def _rows(
    summaries: dict[str, str], trait: Trait, data_inputs: tuple[int, ...] = (0,), *, variadic: bool = False
) -> tuple[QuantRow, ...]:
    return tuple(
        QuantRow(op_type=op_type, trait=trait, data_inputs=data_inputs, variadic=variadic, summary=summary)
        for op_type, summary in summaries.items()
    )


QUANTIZED_ONLY: tuple[QuantRow, ...] = (
    *_rows(_FUNCTIONS, Trait.ELEMENTWISE),
    *_rows(_OVER_AXES, Trait.ELEMENTWISE),
    *_rows(_PAIRS, Trait.ELEMENTWISE, (0, 1)),
    QuantRow(op_type="Where", trait=Trait.ELEMENTWISE, data_inputs=(1, 2), summary="one of two tensors by a condition"),
    *_rows(_VARIADIC, Trait.ELEMENTWISE, variadic=True),
    QuantRow(
        op_type="QuickGelu",
        trait=Trait.ELEMENTWISE,
        domain="com.microsoft",
        summary="input times the logistic function of its multiple",
    ),
    *_rows(_MOVEMENTS, Trait.MOVEMENT),
    *_rows(_SCATTERS, Trait.MOVEMENT, (0, 2)),
    QuantRow(op_type="TopK", trait=Trait.MOVEMENT, many_outputs=True, summary="the largest elements and their indices"),
    *_rows(_COMPARISONS, Trait.INDEX, (0, 1)),
    *_rows(_QUESTIONS, Trait.INDEX),
    *_rows(_NORMALIZATIONS, Trait.NORMALIZATION),
    QuantRow(
        op_type="LSTM",
        trait=Trait.RECURRENT,
        data_inputs=(0, 5, 6),
        many_outputs=True,
        ties=((5, (0, 1)), (6, (2,))),
        summary="long short-term memory; hidden state and cell each have one scale",
    ),
    QuantRow(
        op_type="GRU",
        trait=Trait.RECURRENT,
        data_inputs=(0, 5),
        many_outputs=True,
        ties=((5, (0, 1)),),
        summary="gated recurrent unit; the hidden state has one scale",
    ),
    QuantRow(
        op_type="RNN",
        trait=Trait.RECURRENT,
        data_inputs=(0, 5),
        many_outputs=True,
        ties=((5, (0, 1)),),
        summary="plain recurrence; the hidden state has one scale",
    ),
)
