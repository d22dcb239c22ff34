"""Every error that hexqdq raises on purpose: what it is about, what was found, what to do next."""

from __future__ import annotations


class HexqdqError(Exception):
    """An error that names its subject and the next step.

    ``subject`` is the file, node, tensor or option at fault; ``problem`` says what was found and
    what was expected; ``hint`` is the next step. ``exit_code`` is what the command line returns.
    """

    exit_code = 1

    def __init__(self, subject: str, problem: str, hint: str = "") -> None:
        super().__init__(subject, problem, hint)
        self.subject = subject
        self.problem = problem
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.subject}: {self.problem}"
        return f"{text}\n  next: {self.hint}" if self.hint else text


class ModelError(HexqdqError):
    """The ONNX model cannot be read, checked or made static."""


class CalibrationError(HexqdqError):
    """The calibration data do not fit the model or hold values that set no range."""


class QuantizationError(HexqdqError):
    """Quantization parameters are invalid or a tensor cannot be quantized as asked."""


class RescaleError(QuantizationError):
    """A scale ratio or accumulator lies outside the domain of TOSA's RESCALE."""


class UnsupportedError(HexqdqError):
    """The NPU has no form for a unit, and falling back to the CPU was not allowed."""


class ContextError(HexqdqError):
    """A context file is not one, is damaged, or does not fit this version, target or machine."""


class ExecutorError(HexqdqError):
    """An executor is not available on this machine or stopped while running a segment."""


class InputError(HexqdqError):
    """A feed given to ``run`` has the wrong name, shape or type."""


class UsageError(HexqdqError):
    """An option or its value is unknown; the message lists the valid ones."""

    exit_code = 2


class CompileError(HexqdqError):
    """The tool-chain failed on a unit that partition accepted: a fault of hexqdq, not of the model."""

    exit_code = 3
