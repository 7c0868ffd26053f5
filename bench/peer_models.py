"""The models on which Rockmate is held against its peers, and their layers, which are what checkpointing works on."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from diffusers import UNet2DModel
from torch import nn
from transformers import (
    RegNetConfig,
    RegNetForImageClassification,
    ResNetConfig,
    ResNetForImageClassification,
    ViTConfig,
    ViTForImageClassification,
)
from workloads import Inputs, Make, gpt2, images, llama, regnet, resnet50


@dataclass(frozen=True)
class PeerModel:
    """How to make a model, and which of its modules are the layers that a user would checkpoint.

    Attributes:
        title: for the table.
        make: gives the model and one batch.
        small: the same kind of model, to see that the benchmark works.
        layers: pattern that the whole path of a layer matches.
    """

    title: str
    make: Make
    small: Make
    layers: str

    def layers_of(self, model: nn.Module) -> list[nn.Module]:
        return [module for path, module in model.named_modules() if re.fullmatch(self.layers, path)]


def vit(layers: int = 6, width: int = 384, size: int = 224, batch: int = 4) -> tuple[nn.Module, Inputs]:
    """A vision transformer on patches of 16 x 16, with dropout 0.1."""
    config = ViTConfig(
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=width // 64,
        intermediate_size=4 * width,
        image_size=size,
        hidden_dropout_prob=0.1,
        num_labels=10,
        problem_type="single_label_classification",
    )
    images = torch.randn(batch, 3, size, size)
    return ViTForImageClassification(config).train(), {"pixel_values": images, "labels": torch.arange(batch) % 10}


def small_resnet() -> tuple[nn.Module, Inputs]:
    config = ResNetConfig(
        embedding_size=16,
        hidden_sizes=[32, 64],
        depths=[2, 2],
        num_labels=10,
        problem_type="single_label_classification",
    )
    return ResNetForImageClassification(config).train(), images(64, 2)


def small_regnet() -> tuple[nn.Module, Inputs]:
    config = RegNetConfig(
        embedding_size=16,
        hidden_sizes=[32, 64],
        depths=[2, 2],
        groups_width=16,
        num_labels=10,
        problem_type="single_label_classification",
    )
    return RegNetForImageClassification(config).train(), images(64, 2)


class _Loss:
    def __init__(self, loss: torch.Tensor) -> None:
        self.loss = loss


class Denoiser(nn.Module):
    """A UNet of diffusers with the loss of its training: mean squared error of the predicted noise."""

    def __init__(self, unet: nn.Module) -> None:
        super().__init__()
        self.unet = unet

    def forward(self, sample: torch.Tensor, timestep: torch.Tensor, noise: torch.Tensor) -> _Loss:
        predicted = self.unet(sample, timestep, return_dict=False)[0]
        return _Loss(nn.functional.mse_loss(predicted, noise))


def unet(size: int = 64, batch: int = 2, width: int = 64) -> tuple[nn.Module, Inputs]:
    """Three resolutions with long skips, attention at the two lower ones; group normalization."""
    model = UNet2DModel(
        sample_size=size,
        block_out_channels=(width, 2 * width, 2 * width),
        layers_per_block=2,
        down_block_types=("DownBlock2D", "AttnDownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "AttnUpBlock2D", "UpBlock2D"),
        norm_num_groups=16,
    )
    inputs = {
        "sample": torch.randn(batch, 3, size, size),
        "timestep": torch.arange(batch) * 100,
        "noise": torch.randn(batch, 3, size, size),
    }
    return Denoiser(model).train(), inputs


PEER_MODELS: dict[str, PeerModel] = {
    "gpt2": PeerModel(
        "GPT-2: 4 layers, width 256, 256 tokens, batch 4, dropout 0.1",
        partial(gpt2, layers=4),
        partial(gpt2, layers=2, width=64, tokens=64, batch=2),
        r"transformer\.h\.\d+",
    ),
    "llama": PeerModel(
        "Llama: 4 layers, width 256, 256 tokens, batch 4",
        partial(llama, layers=4, tokens=256),
        partial(llama, layers=2, tokens=32, batch=2),
        r"model\.layers\.\d+",
    ),
    "resnet": PeerModel("ResNet-50: 128 x 128, batch 4", resnet50, small_resnet, r"resnet\.encoder\.stages\.\d+\.layers\.\d+"),
    "regnet": PeerModel(
        "RegNet (2, 6, 12, 2): 128 x 128, batch 4", regnet, small_regnet, r"regnet\.encoder\.stages\.\d+\.layers\.\d+"
    ),
    "vit": PeerModel(
        "ViT: 6 layers, width 384, 224 x 224, batch 4, dropout 0.1",
        vit,
        partial(vit, layers=2, width=64, size=64, batch=2),
        r"vit\.layers\.\d+",
    ),
    "unet": PeerModel(
        "UNet2D: 64, 128, 128 channels, 64 x 64, batch 2",
        unet,
        partial(unet, size=16, batch=1, width=16),
        r"unet\.(down_blocks|up_blocks)\.\d+\.(resnets|attentions)\.\d+|unet\.mid_block\.(resnets|attentions)\.\d+",
    ),
}


def on_device(make: Make, device: torch.device) -> Make:
    """The same model and inputs, moved to the device: drawn on the CPU, so that they are the same everywhere."""

    def made() -> tuple[nn.Module, Inputs]:
        model, inputs = make()
        return model.to(device), {name: value.to(device) for name, value in inputs.items()}

    return made


Wrap = Callable[[nn.Module], nn.Module]
