"""QuantRow: how the quantizer treats one ONNX op, whether or not the NPU has a form for it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Trait(Enum):
    """How the quantizer treats an op's tensors."""

    CONTRACTION = "weights per channel, bias s32 of scale input x weight, output free"
    NORMALIZATION = "scale as a weight per tensor, bias s32 of scale input x weight, output free"
    RECURRENT = "weights per row, bias s32 of scale input x weight, a state one scale in and out"
    ELEMENTWISE = "every input and the output free, one type"
    MOVEMENT = "output shares scale and zero point with its data input"
    FIXED_RANGE = "the output's range is known from the op"
    INDEX = "input free, output integers without a scale"


@dataclass(frozen=True, kw_only=True)
class QuantRow:
    """What quantization needs to know of one op.

    ``data_inputs`` are the activations, ``value_inputs`` constants in the data's own scale (Pad's fill);
    ``variadic`` ops take any number of data inputs. ``weight_axis`` is the output-channel axis of input 1.
    ``activation`` marks ops that fold into their producer; ``many_outputs`` ones whose outputs all get a Q.
    ``fixed_output`` is the output's scale and zero point as for u8. ``ties`` are states of a recurrence: an
    input with the outputs that share its parameters.
    """

    op_type: str
    trait: Trait
    domain: str = ""
    data_inputs: tuple[int, ...] = (0,)
    weight_axis: int | None = None
    activation: bool = False
    variadic: bool = False
    value_inputs: tuple[int, ...] = ()
    many_outputs: bool = False
    fixed_output: tuple[float, int] | None = None
    ties: tuple[tuple[int, tuple[int, ...]], ...] = ()
    summary: str = ""

    def data_positions(self, count: int) -> tuple[int, ...]:
        """Positions of the data among ``count`` inputs."""
        return tuple(range(count)) if self.variadic else tuple(i for i in self.data_inputs if i < count)
