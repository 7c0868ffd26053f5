"""Small modules that the patterns are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


class Fn(nn.Module):
    """A module from a function of (module, inputs...); ``parts`` become submodules, parameters, buffers or attributes."""

    def __init__(self, function: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        self.function = function
        for name, part in parts.items():
            if isinstance(part, Tensor) and not isinstance(part, nn.Parameter):
                self.register_buffer(name, part)
            else:
                setattr(self, name, part)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(self, *args, **kwargs)


def mlp(width: int = 64, **more: Any) -> dict[str, Any]:
    """Layers a, b, c from 16 features to ``width``, 16 and 1."""
    return {"a": nn.Linear(16, width), "b": nn.Linear(width, 16), "c": nn.Linear(16, 1), **more}


def rows(count: int = 24, requires_grad: bool = False) -> tuple[Tensor]:
    return (torch.randn(count, 16, requires_grad=requires_grad),)


def images(size: int = 8, channels: int = 3) -> tuple[Tensor]:
    return (torch.randn(4, channels, size, size),)
