"""Pictures as samples: resized, cropped at the centre, normalised and laid out as the model takes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hexqdq.app.calibration.signature import Array, Feed, Inputs, Signature, fitted, only_input, place
from hexqdq.errors import CalibrationError, UsageError

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".ppm", ".pgm", ".gif", ".tif", ".tiff")
LAYOUTS = ("nchw", "nhwc")
CHANNELS = ("rgb", "bgr")
GREY_OR_COLOUR = (1, 3)


@dataclass(frozen=True)
class PictureOptions:
    """How a picture becomes an input.

    ``size`` is the height and width it is stretched to, or one number for its shorter side; the
    centre of the model's size is cut out of that. None stretches it to the model's size. A float
    input gets ``(value - mean) / std``, where white is ``white``; a uint8 input gets the pixels.
    """

    size: tuple[int, ...] | None = None
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    white: float = 1.0
    layout: str | None = None
    channels: str = "rgb"

    def __post_init__(self) -> None:
        if self.layout not in (None, *LAYOUTS):
            raise UsageError("--layout", f"{self.layout!r} is unknown; expected {' or '.join(LAYOUTS)}", SEE_HELP)
        if self.channels not in CHANNELS:
            raise UsageError("--channels", f"{self.channels!r} is unknown; expected {' or '.join(CHANNELS)}", SEE_HELP)
        for option, values in (("--mean", self.mean), ("--std", self.std)):
            if len(values) not in GREY_OR_COLOUR or not np.isfinite(values).all():
                raise UsageError(option, f"is {values}; expected 1 or 3 finite numbers", SEE_HELP)
        if min(self.std) <= 0:
            raise UsageError("--std", f"is {self.std}; expected numbers above 0", SEE_HELP)
        if not 0 < self.white < np.inf:
            raise UsageError("--white", f"is {self.white}; expected a number above 0", "give 1 or 255")

    @property
    def normalises(self) -> bool:
        return (self.mean, self.std, self.white) != ((0.0,), (1.0,), 1.0)


SEE_HELP = "see hexqdq quantize --help"


def options_from_text(
    size: str | None, mean: str | None, std: str | None, white: float | None, layout: str | None, channels: str | None
) -> PictureOptions | None:
    """The options as the command line gives them; None where none was given."""
    given: dict[str, Any] = {
        "size": None if size is None else _size(size),
        "mean": None if mean is None else _numbers("--mean", mean),
        "std": None if std is None else _numbers("--std", std),
        "white": white,
        "layout": layout,
        "channels": channels,
    }
    given = {name: value for name, value in given.items() if value is not None}
    return PictureOptions(**given) if given else None


def _size(text: str) -> tuple[int, ...]:
    sizes = text.lower().split("x")
    if len(sizes) > 2 or not all(size.isdecimal() and 0 < int(size) <= 1 << 16 for size in sizes):
        raise UsageError("--image-size", f"{text!r} is no size; expected 224 or 224x320 (height x width)", SEE_HELP)
    return tuple(map(int, sizes))


def _numbers(option: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise UsageError(option, f"{text!r} is no number or three; expected such as 0.5,0.5,0.5", SEE_HELP) from error


class Pictures:
    """A sample a picture, for the one input of a model that has one."""

    def __init__(self, source: Path, files: Sequence[Path], inputs: Inputs, options: PictureOptions) -> None:
        self._files, self._options = tuple(files), options
        self._name, self._signature = only_input(source, inputs, "pictures")
        self._layout = _layout(source, self._signature, options.layout)
        self._channels, self._height, self._width = _dimensions(self._signature, self._layout)
        self._check()

    def __len__(self) -> int:
        return len(self._files)

    def __iter__(self) -> Iterator[Feed]:
        for file in self._files:
            sample = self._laid_out(self._normalised(self._pixels(file)))
            yield {self._name: fitted(place(file, self._name), sample, self._signature, "see --layout")}

    def _check(self) -> None:
        options, dtype = self._options, self._signature.dtype
        smaller = options.size is not None and (
            min(options.size) < min(self._height, self._width)
            if len(options.size) == 1
            else (options.size[0] < self._height or options.size[-1] < self._width)
        )
        if smaller:
            found = f"{'x'.join(map(str, options.size or ()))} is smaller than the input's {self._height}x{self._width}"
            raise UsageError("--image-size", f"{found}; expected at least that", "leave it out to stretch pictures")
        if dtype != np.uint8 and dtype.kind != "f":
            found = f"is {dtype}; pictures feed float or uint8 inputs"
            raise CalibrationError(f"input {self._name!r}", found, "give .npz files of what the model takes")
        if dtype == np.uint8 and options.normalises:
            found = f"input {self._name!r} is uint8 and takes pixels as they are; expected no such option"
            raise UsageError("--mean, --std, --white", found, "leave them out")
        for option, values in (("--mean", options.mean), ("--std", options.std)):
            if len(values) not in (1, self._channels):
                found = f"has {len(values)} numbers; expected 1 or as many as channels, {self._channels}"
                raise UsageError(option, found, SEE_HELP)

    def _pixels(self, file: Path) -> Array:
        """Height x width x channels, uint8."""
        Image, ImageOps = _pillow()
        try:
            with Image.open(file) as opened:
                picture = ImageOps.exif_transpose(opened).convert("L" if self._channels == 1 else "RGB")
        except Exception as error:
            problem = f"is no picture that can be read: {error or type(error).__name__}"
            raise CalibrationError(str(file), problem, "remove it from the calibration data") from error
        height, width = self._resized(picture.height, picture.width)
        pixels = np.asarray(picture.resize((width, height), Image.Resampling.BILINEAR))
        top, left = (height - self._height) // 2, (width - self._width) // 2
        cut = pixels[top : top + self._height, left : left + self._width]
        cut = cut.reshape(self._height, self._width, self._channels)
        return cut[:, :, ::-1] if self._options.channels == "bgr" else cut

    def _resized(self, height: int, width: int) -> tuple[int, int]:
        size = self._options.size or (self._height, self._width)
        if len(size) == 2:
            return size[0], size[1]
        shorter = min(height, width)
        resized = height * size[0] // shorter, width * size[0] // shorter
        return max(resized[0], self._height), max(resized[1], self._width)

    def _normalised(self, pixels: Array) -> Array:
        if self._signature.dtype == np.uint8:
            return pixels
        scaled = pixels.astype(np.float32) * np.float32(self._options.white / 255)
        mean, std = (np.array(values, np.float32) for values in (self._options.mean, self._options.std))
        normalised: Array = (scaled - mean) / std
        return normalised

    def _laid_out(self, pixels: Array) -> Array:
        return (pixels.transpose(2, 0, 1) if self._layout == "nchw" else pixels)[None]


def _pillow() -> tuple[Any, Any]:
    """Pillow's modules Image and ImageOps; raises UsageError where it is not installed."""
    try:
        from PIL import Image, ImageOps
    except ImportError as error:
        raise UsageError("--calib", "pictures need Pillow, which is missing", "pip install 'hexqdq[eval]'") from error
    return Image, ImageOps


def _layout(source: Path, signature: Signature, chosen: str | None) -> str:
    shape = signature.shape
    if len(shape) != 4 or shape[0] != 1:
        problem = f"holds pictures, but the input has shape {shape}; expected one picture, 1x3x224x224 or 1x224x224x3"
        raise CalibrationError(str(source), problem, "give .npz files of what the model takes")
    fitting = [name for name, axis in (("nchw", 1), ("nhwc", 3)) if shape[axis] in GREY_OR_COLOUR]
    if chosen is not None and chosen not in fitting:
        found = f"{chosen} does not fit the input's shape {shape}; expected 1 or 3 channels there"
        raise UsageError("--layout", found, f"give --layout {fitting[0]}" if fitting else "give .npz files")
    if chosen is None and len(fitting) != 1:
        problem = f"holds pictures, but where the channels are in an input of shape {shape} is open; expected 1 or 3"
        raise CalibrationError(str(source), problem, "say --layout nchw or nhwc" if fitting else "give .npz files")
    return chosen or fitting[0]


def _dimensions(signature: Signature, layout: str) -> tuple[int, int, int]:
    """Channels, height and width."""
    _, first, second, third = signature.shape
    return (first, second, third) if layout == "nchw" else (third, first, second)
