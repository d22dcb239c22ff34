"""Trains the digits network and writes digits.onnx, digits_heldout.npz and digits_calib.npz beside this file.

Run with the ``train`` extra installed: ``python models/digits/train.py``. Seeds are fixed and one
thread is used, so that the same versions give the same bytes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.nn import functional

SEED = 20
EPOCHS = 120
HELD_OUT = 500
CALIBRATION = 96
PIXEL_RANGE = 16.0
FOLDER = Path(__file__).resolve().parent


class ConvNorm(nn.Module):
    """Convolution, batch normalisation and, where asked for, ReLU6."""

    def __init__(self, inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1, active: bool = True):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(outputs)
        self.active = active

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(self.conv(x))
        return functional.relu6(x) if self.active else x

    def folded(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights and bias with the normalisation folded in."""
        gain = self.norm.weight / torch.sqrt(self.norm.running_var + self.norm.eps)
        weight = self.conv.weight * gain[:, None, None, None]
        bias = self.norm.bias - self.norm.running_mean * gain
        return weight.detach().numpy(), bias.detach().numpy()


class InvertedResidual(nn.Module):
    """1x1 expand, 3x3 depthwise, 1x1 project; adds its input where the shapes agree."""

    def __init__(self, inputs: int, hidden: int, outputs: int, stride: int = 1):
        super().__init__()
        self.expand = ConvNorm(inputs, hidden, 1)
        self.depthwise = ConvNorm(hidden, hidden, 3, stride, hidden)
        self.project = ConvNorm(hidden, outputs, 1, active=False)
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y = self.project(self.depthwise(self.expand(x)))
        return x + y if self.residual else y


class DigitsNet(nn.Module):
    """Stem, three inverted residual blocks (the second halves the size), 1x1 head, pool, classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = ConvNorm(1, 16, 3)
        self.blocks = nn.ModuleList(
            [InvertedResidual(16, 48, 16), InvertedResidual(16, 64, 24, stride=2), InvertedResidual(24, 96, 24)]
        )
        self.head = ConvNorm(24, 64, 1)
        self.classifier = nn.Linear(64, 10)

    def forward(self, image: Tensor) -> Tensor:
        x = self.stem(image / PIXEL_RANGE)
        for block in self.blocks:
            x = block(x)
        return self.classifier(self.head(x).mean((2, 3)))


class OnnxWriter:
    """Collects nodes and weights in order; every method returns the name of the value it makes."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.constant("six_low", np.float32(0))
        self.constant("six_high", np.float32(6))

    def constant(self, name: str, values: np.ndarray | np.float32) -> str:
        self.weights.append(numpy_helper.from_array(np.asarray(values, np.float32), name))
        return name

    def node(self, op_type: str, name: str, inputs: list[str], **attributes: object) -> str:
        self.nodes.append(helper.make_node(op_type, inputs, [name], name=name, **attributes))
        return name

    def conv(self, name: str, layer: ConvNorm, source: str, gain: float = 1.0) -> str:
        weight, bias = layer.folded()
        inputs = [source, self.constant(f"{name}.weight", weight * gain), self.constant(f"{name}.bias", bias)]
        conv = layer.conv
        side = conv.padding[0]
        result = self.node(
            "Conv",
            name,
            inputs,
            kernel_shape=list(conv.kernel_size),
            strides=list(conv.stride),
            pads=[side] * 4,
            group=conv.groups,
        )
        return self.node("Clip", f"{name}.relu6", [result, "six_low", "six_high"]) if layer.active else result

    def block(self, name: str, block: InvertedResidual, source: str) -> str:
        x = self.conv(f"{name}.expand", block.expand, source)
        x = self.conv(f"{name}.depthwise", block.depthwise, x)
        x = self.conv(f"{name}.project", block.project, x)
        return self.node("Add", f"{name}.add", [source, x]) if block.residual else x


def export(network: DigitsNet) -> onnx.ModelProto:
    """The network in evaluation form as ONNX: image [1,1,8,8] in 0..16 to logits [1,10]."""
    writer = OnnxWriter()
    x = writer.conv("stem", network.stem, "image", 1 / PIXEL_RANGE)
    for index, block in enumerate(network.blocks):
        x = writer.block(f"block{index}", block, x)
    x = writer.conv("head", network.head, x)
    x = writer.node("GlobalAveragePool", "pool", [x])
    x = writer.node("Flatten", "flatten", [x], axis=1)
    weight = writer.constant("classifier.weight", network.classifier.weight.detach().numpy())
    bias = writer.constant("classifier.bias", network.classifier.bias.detach().numpy())
    writer.nodes.append(helper.make_node("Gemm", [x, weight, bias], ["logits"], name="classifier", transB=1))
    graph = helper.make_graph(
        writer.nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 8, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 10])],
        writer.weights,
    )
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="hexqdq models/digits")
    onnx.checker.check_model(model, full_check=True)
    return model


def shifted(images: Tensor, generator: torch.Generator) -> Tensor:
    """Images moved by up to one pixel each way, the border filled with ink-free paper."""
    padded = functional.pad(images, (1, 1, 1, 1))
    moves = torch.randint(0, 3, (len(images), 2), generator=generator)
    return torch.stack([image[:, y : y + 8, x : x + 8] for image, (y, x) in zip(padded, moves.tolist(), strict=True)])


def train(images: Tensor, labels: Tensor) -> DigitsNet:
    """Trains with AdamW under a one-cycle rate, half of every batch shifted."""
    generator = torch.Generator().manual_seed(SEED)
    network = DigitsNet()
    batches = len(images) // 64
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=0.02)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.01, EPOCHS * batches)
    network.train()
    for _ in range(EPOCHS):
        order = torch.randperm(len(images), generator=generator)[: batches * 64].view(batches, 64)
        for batch in order:
            inputs = torch.cat([images[batch[:32]], shifted(images[batch[32:]], generator)])
            loss = functional.cross_entropy(network(inputs), labels[batch], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rate.step()
    return network.eval()


def main() -> None:
    torch.manual_seed(SEED)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    data = load_digits()
    images = data.images.astype(np.float32)[:, None]
    train_x, held_x, train_y, held_y = train_test_split(
        images, data.target, test_size=HELD_OUT, random_state=SEED, stratify=data.target
    )
    network = train(torch.from_numpy(train_x), torch.from_numpy(train_y))
    with torch.no_grad():
        hits = (network(torch.from_numpy(held_x)).argmax(1).numpy() == held_y).sum()
    print(f"held-out accuracy {100 * hits / HELD_OUT:.2f} % of {HELD_OUT}")
    onnx.save(export(network), FOLDER / "digits.onnx")
    np.savez_compressed(FOLDER / "digits_heldout.npz", x=held_x, y=held_y.astype(np.int64))
    np.savez_compressed(FOLDER / "digits_calib.npz", image=train_x[:CALIBRATION])


if __name__ == "__main__":
    main()
