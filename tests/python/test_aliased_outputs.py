"""Outputs that share memory: gradients as in plain PyTorch, also after something was written into one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rockmate

RETURNED: dict[str, Callable[[Tensor], tuple[Tensor, ...]]] = {
    "a value and its transpose": lambda h: (h * 2, h.t(), h),
    "two views of a value": lambda h: (h.t(), h.view(-1), h * 3),
    "views of views": lambda h: (h.t()[1:], h.t(), h.exp()),
    "halves": lambda h: (h[:3], h[3:], h * 2),
    "windows": lambda h: (h, h.unfold(0, 2, 1), h * 2),
    "a value that is saved, and its transpose": lambda h: (h.sin(), h.t(), h),
    "one view of a value that is saved": lambda h: (h.sin(), h.t()),
}


def nothing(outputs: list[Tensor]) -> None:
    pass


def write_first(outputs: list[Tensor]) -> None:
    outputs[0].mul_(3)


def write_second(outputs: list[Tensor]) -> None:
    outputs[1].mul_(3)


def write_detached(outputs: list[Tensor]) -> None:
    outputs[1].detach().add_(1)


def write_last(outputs: list[Tensor]) -> None:
    outputs[-1][0] = outputs[-1][1] * 2


class Model(nn.Module):
    def __init__(self, returned: Callable[[Tensor], tuple[Tensor, ...]]) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 6)
        self.returned = returned

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return self.returned(self.linear(x))


def train(returned: str, write: Callable[[list[Tensor]], None], wrap: Callable[[nn.Module], nn.Module]) -> list[Any] | str:
    torch.manual_seed(0)
    model = wrap(Model(RETURNED[returned]))
    x = torch.randn(6, 6, requires_grad=True)
    outputs = list(model(x))
    try:
        write(outputs)
        gradients = [torch.linspace(-1, 1.3, output.numel()).reshape(output.shape) ** 3 for output in outputs]
        torch.autograd.backward(outputs, gradients)
    except RuntimeError as error:
        return str(error)
    return [x.grad, *(p.grad for p in model.parameters()), *(output.detach() for output in outputs)]


@pytest.mark.parametrize("write", [nothing, write_first, write_second, write_detached, write_last])
@pytest.mark.parametrize("returned", RETURNED)
def test_as_plain(returned: str, write: Callable[[list[Tensor]], None]) -> None:
    plain = train(returned, write, lambda model: model)
    ours = train(returned, write, lambda model: rockmate.Rockmate(model, cost="a100"))
    if isinstance(plain, str):
        assert isinstance(ours, str) and "modified" in ours  # never another result instead
    else:
        assert not isinstance(ours, str), ours
        for expected, got in zip(plain, ours, strict=True):
            assert torch.equal(expected, got)
