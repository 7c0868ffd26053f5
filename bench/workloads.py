"""The models that the benchmarks train, with random weights and inputs."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

os.environ.setdefault("HF_HUB_OFFLINE", "1")
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    RegNetConfig,
    RegNetForImageClassification,
    ResNetConfig,
    ResNetForImageClassification,
)

Inputs = dict[str, Any]
Make = Callable[[], tuple[nn.Module, Inputs]]


def gpt2(
    layers: int = 12, width: int = 256, heads: int = 4, tokens: int = 256, batch: int = 4, vocab: int = 256
) -> tuple[nn.Module, Inputs]:
    """GPT-2 with dropout 0.1 everywhere; returns the loss beside the logits."""
    config = GPT2Config(
        n_layer=layers,
        n_embd=width,
        n_head=heads,
        n_positions=tokens,
        vocab_size=vocab,
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
    )
    ids = torch.randint(0, vocab, (batch, tokens))
    return GPT2LMHeadModel(config).train(), {"input_ids": ids, "labels": ids}


def gpt2_large() -> tuple[nn.Module, Inputs]:
    """36 layers of width 1280, 20 heads, vocabulary 50257; 4 sequences of 512 tokens."""
    return gpt2(layers=36, width=1280, heads=20, tokens=512, batch=4, vocab=50257)


def gpt_of_8_layers() -> tuple[nn.Module, Inputs]:
    """The model on which Rockmate is held against PyTorch's own means."""
    return gpt2(layers=8)


def resnet50(size: int = 128, batch: int = 4) -> tuple[nn.Module, Inputs]:
    """transformers' default: full depth (3, 4, 6, 3) and width; small images."""
    config = ResNetConfig(num_labels=10, problem_type="single_label_classification")
    return ResNetForImageClassification(config).train(), images(size, batch)


def regnet(size: int = 128, batch: int = 4) -> tuple[nn.Module, Inputs]:
    """transformers' default: full depth (2, 6, 12, 2) and width; small images."""
    config = RegNetConfig(num_labels=10, problem_type="single_label_classification")
    return RegNetForImageClassification(config).train(), images(size, batch)


def llama(layers: int = 4, tokens: int = 128, batch: int = 4) -> tuple[nn.Module, Inputs]:
    """Grouped-query attention, gated MLP. ``use_cache`` stays at its default: without it, transformers takes another path
    (and rounds otherwise) when it is compiled."""
    config = LlamaConfig(
        hidden_size=256,
        intermediate_size=688,
        num_hidden_layers=layers,
        num_attention_heads=8,
        num_key_value_heads=4,
        vocab_size=256,
    )
    ids = torch.randint(0, 256, (batch, tokens))
    return LlamaForCausalLM(config).train(), {"input_ids": ids, "labels": ids}


def images(size: int, batch: int) -> Inputs:
    """Images and their labels."""
    return {"pixel_values": torch.randn(batch, 3, size, size), "labels": torch.arange(batch) % 10}


class _Output(dict[str, torch.Tensor]):
    @property
    def loss(self) -> torch.Tensor:
        return self["loss"]


class ManyTinyOps(nn.Module):
    """60 layers of a few operations on 64 numbers each: what costs is calling them."""

    def __init__(self, layers: int = 60, width: int = 16) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> _Output:
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = x + torch.tanh(layer(norm(x))) * 0.5
        return _Output(loss=x.square().mean())


def many_tiny_ops() -> tuple[nn.Module, Inputs]:
    return ManyTinyOps().train(), {"x": torch.randn(4, 16)}


MODELS: dict[str, Make] = {
    "GPT-2, 12 layers": gpt2,
    "ResNet-50": resnet50,
    "RegNet": regnet,
    "Llama, 4 layers": llama,
}
