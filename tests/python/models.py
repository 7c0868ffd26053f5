"""The models of the tests: real ones, at a small size."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
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


def gpt2(layers: int = 2, width: int = 64, tokens: int = 64, batch: int = 2) -> tuple[nn.Module, Inputs]:
    """Dropout 0.1 everywhere; the loss beside the logits."""
    config = GPT2Config(
        n_layer=layers,
        n_embd=width,
        n_head=4,
        vocab_size=256,
        n_positions=tokens,
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
    )
    ids = torch.randint(0, 256, (batch, tokens))
    return GPT2LMHeadModel(config).train(), {"input_ids": ids, "labels": ids}


def llama(layers: int = 2) -> tuple[nn.Module, Inputs]:
    config = LlamaConfig(
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=256,
    )  # with use_cache=False, transformers builds its attention mask otherwise when compiled, and rounds otherwise
    ids = torch.randint(0, 256, (2, 64))
    return LlamaForCausalLM(config).train(), {"input_ids": ids, "labels": ids}


def _images(size: int) -> Inputs:
    return {"pixel_values": torch.randn(2, 3, size, size), "labels": torch.tensor([1, 2])}


def resnet(depths: tuple[int, ...] = (2, 2), size: int = 32) -> tuple[nn.Module, Inputs]:
    config = ResNetConfig(
        embedding_size=16,
        hidden_sizes=[32 * 2**i for i in range(len(depths))],
        depths=list(depths),
        num_labels=10,
        problem_type="single_label_classification",
    )
    return ResNetForImageClassification(config).train(), _images(size)


def resnet50(size: int = 64) -> tuple[nn.Module, Inputs]:
    """Full depth and width, small images."""
    config = ResNetConfig(num_labels=10, problem_type="single_label_classification")
    return ResNetForImageClassification(config).train(), _images(size)


def regnet(size: int = 64) -> tuple[nn.Module, Inputs]:
    """Full depth (2, 6, 12, 2), narrow."""
    config = RegNetConfig(
        hidden_sizes=[32, 48, 96, 160], groups_width=16, num_labels=10, problem_type="single_label_classification"
    )
    return RegNetForImageClassification(config).train(), _images(size)
