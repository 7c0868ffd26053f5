"""The models whose training steps the planner benchmark plans: made under fake tensors, priced for a V100 by roofline.

Nothing of a model is ever allocated or run. The sizes are those of the papers where they name them, else the published
configurations; all in float32.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

import rockmate

os.environ.setdefault("HF_HUB_OFFLINE", "1")

Inputs = dict[str, Any]
Model = tuple[nn.Module, Inputs]


class MeanOf(nn.Module):
    """A model without a head: the loss is the mean of one of its outputs."""

    def __init__(self, body: nn.Module, output: str | None) -> None:
        super().__init__()
        self.body = body
        self.output = output

    def forward(self, **inputs: Any) -> torch.Tensor:
        result = self.body(**inputs)
        chosen = result if self.output is None else getattr(result, self.output)
        return chosen.float().mean()


def gpt2(
    layers: int, width: int, heads: int, attention: str = "eager", tokens: int = 512, batch: int = 4, head: bool = True
) -> Model:
    """GPT-2. ``attention`` "eager" is written out, with dropout on the attention weights; "sdpa" is one fused op, without.
    ``head=False`` leaves out the output layer and the cross-entropy, whose few values of vocabulary size set the floor."""
    from transformers import GPT2Config, GPT2LMHeadModel, GPT2Model

    config = GPT2Config(
        n_layer=layers,
        n_embd=width,
        n_head=heads,
        n_positions=tokens,
        use_cache=False,
        attn_implementation=attention,
        attn_pdrop=0.1 if attention == "eager" else 0.0,
    )
    ids = torch.zeros(batch, tokens, dtype=torch.long)
    if head:
        return GPT2LMHeadModel(config), {"input_ids": ids, "labels": ids}
    return MeanOf(GPT2Model(config), "last_hidden_state"), {"input_ids": ids}


def resnet(depths: list[int], batch: int = 32, size: int = 224) -> Model:
    from transformers import ResNetConfig, ResNetForImageClassification

    config = ResNetConfig(depths=depths, num_labels=1000, problem_type="single_label_classification")
    return ResNetForImageClassification(config), _images(batch, size)


def regnet(batch: int = 32, size: int = 224) -> Model:
    from transformers import RegNetConfig, RegNetForImageClassification

    config = RegNetConfig(num_labels=1000, problem_type="single_label_classification")
    return RegNetForImageClassification(config), _images(batch, size)


def llama(layers: int = 12, tokens: int = 512, batch: int = 4) -> Model:
    """Grouped-query attention, gated MLP, rotary positions."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=1024,
        intermediate_size=2816,
        num_hidden_layers=layers,
        num_attention_heads=16,
        num_key_value_heads=8,
        vocab_size=32000,
        attn_implementation="eager",
    )
    ids = torch.zeros(batch, tokens, dtype=torch.long)
    return LlamaForCausalLM(config), {"input_ids": ids, "labels": ids}


def t5(layers: int = 6, tokens: int = 512, batch: int = 4) -> Model:
    """T5-small: the encoder's output is read by every layer of the decoder."""
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(num_layers=layers, use_cache=False, decoder_start_token_id=0, pad_token_id=0)
    ids = torch.zeros(batch, tokens, dtype=torch.long)
    return T5ForConditionalGeneration(config), {"input_ids": ids, "labels": ids}


def unet(batch: int = 8, size: int = 64) -> Model:
    """The UNet of diffusion models, in its default size: the way up reads what the way down has kept."""
    from diffusers import UNet2DModel

    class Loss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = UNet2DModel(sample_size=size)

        def forward(self, sample: torch.Tensor, timestep: torch.Tensor) -> torch.Tensor:
            return self.body(sample, timestep, return_dict=False)[0].square().mean()

    sample, timestep = torch.zeros(batch, 3, size, size), torch.zeros(batch, dtype=torch.long)
    return Loss(), {"sample": sample, "timestep": timestep}


def swin(batch: int = 16, size: int = 224) -> Model:
    """Swin-T: attention in shifted windows."""
    from transformers import SwinConfig, SwinForImageClassification

    config = SwinConfig(image_size=size, num_labels=1000, problem_type="single_label_classification")
    return SwinForImageClassification(config), _images(batch, size)


class DenseLayer(nn.Module):
    """One layer of DenseNet: reads all layers before it in its block, adds ``growth`` channels."""

    def __init__(self, channels: int, growth: int) -> None:
        super().__init__()
        self.narrow = nn.Sequential(
            nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, 4 * growth, kernel_size=1, bias=False)
        )
        self.wide = nn.Sequential(
            nn.BatchNorm2d(4 * growth), nn.ReLU(), nn.Conv2d(4 * growth, growth, kernel_size=3, padding=1, bias=False)
        )

    def forward(self, earlier: list[torch.Tensor]) -> torch.Tensor:
        return self.wide(self.narrow(torch.cat(earlier, dim=1)))


class DenseNet(nn.Module):
    """DenseNet (Huang et al. 2017, arXiv 1608.06993), 121 layers by default."""

    def __init__(self, blocks: tuple[int, ...] = (6, 12, 24, 16), growth: int = 32, classes: int = 1000) -> None:
        super().__init__()
        channels = 2 * growth
        self.stem = nn.Sequential(
            nn.Conv2d(3, channels, kernel_size=7, stride=2, padding=3, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.MaxPool2d(3, stride=2, padding=1),
        )
        self.blocks, self.transitions = nn.ModuleList(), nn.ModuleList()
        for i, depth in enumerate(blocks):
            self.blocks.append(nn.ModuleList(DenseLayer(channels + growth * j, growth) for j in range(depth)))
            channels += growth * depth
            last = i == len(blocks) - 1
            self.transitions.append(nn.Identity() if last else self._transition(channels))
            channels = channels if last else channels // 2
        self.head = nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.classify = nn.Linear(channels, classes)

    @staticmethod
    def _transition(channels: int) -> nn.Module:
        return nn.Sequential(
            nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, channels // 2, kernel_size=1, bias=False), nn.AvgPool2d(2)
        )

    def forward(self, pixel_values: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        x = self.stem(pixel_values)
        for block, transition in zip(self.blocks, self.transitions, strict=True):
            features = [x]
            for layer in block:  # type: ignore[attr-defined]
                features.append(layer(features))
            x = transition(torch.cat(features, dim=1))
        return nn.functional.cross_entropy(self.classify(self.head(x)), labels)


def densenet(batch: int = 32, size: int = 224) -> Model:
    return DenseNet(), _images(batch, size)


def mixtral(layers: int = 6, tokens: int = 512, batch: int = 4) -> Model:
    """Eight experts a layer, two for each token."""
    from transformers import MixtralConfig, MixtralForCausalLM

    config = MixtralConfig(
        hidden_size=512,
        intermediate_size=1024,
        num_hidden_layers=layers,
        num_attention_heads=8,
        num_key_value_heads=4,
        vocab_size=32000,
        num_local_experts=8,
        num_experts_per_tok=2,
        attn_implementation="eager",
    )
    ids = torch.zeros(batch, tokens, dtype=torch.long)
    return MixtralForCausalLM(config), {"input_ids": ids, "labels": ids}


def _images(batch: int, size: int) -> Inputs:
    return {"pixel_values": torch.zeros(batch, 3, size, size), "labels": torch.zeros(batch, dtype=torch.long)}


def training_graph(make: Callable[[], Model], name: str) -> str:
    """The training step of the model as a rockmate graph (JSON), with the times of a V100."""
    with FakeTensorMode():
        model, inputs = make()
    # The plan is not wanted, so it is made as cheaply as can be.
    estimate = rockmate.estimate(model.train(), inputs, cost="v100", levels=2, time_limit_s=0.01, name=name, cache=False)
    return str(estimate.plan.graph.to_json())
