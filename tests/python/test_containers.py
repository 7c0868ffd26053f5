"""Pieces begin inside of PyTorch's own containers."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import Tensor, nn

import rockmate
from rockmate.containers import LOOPED_FORWARD, MOST_WRITTEN_OUT, sequential_forward


class Opaque(nn.Module):
    @torch.compiler.disable
    def forward(self, x: Tensor) -> Tensor:
        return torch.cos(x)


def mlp(depth: int) -> list[nn.Module]:
    return [layer for _ in range(depth) for layer in (nn.Linear(16, 16), nn.Tanh())]


def train(model: nn.Module, budget: str | None) -> tuple[list[Tensor], nn.Module]:
    torch.manual_seed(1)
    x = torch.randn(64, 16)
    trained = model if budget is None else rockmate.Rockmate(model, budget=budget)
    seen = []
    for _ in range(4):
        trained(x).square().mean().backward()
        seen += [parameter.grad.clone() for parameter in model.parameters()]
        model.zero_grad()
    return seen, trained


@pytest.mark.parametrize("nested", [False, True])
def test_pieces_before_and_after_a_break(nested: bool) -> None:
    def make() -> nn.Module:
        torch.manual_seed(0)
        inner = nn.Sequential(*mlp(3), Opaque(), *mlp(3))
        return nn.Sequential(nn.Linear(16, 16), inner, nn.Linear(16, 16)) if nested else inner

    expected, _ = train(make(), None)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # of parts that could not be captured, and of steps over the budget
        got, trained = train(make(), "80%")
    assert all(torch.equal(a, b) for a, b in zip(expected, got, strict=True))
    assert len(trained.plan.pieces) == (4 if nested else 2)
    assert trained.plan.peak_bytes <= trained.plan.budget_bytes
    assert nn.Sequential.forward is LOOPED_FORWARD


@pytest.mark.parametrize("length", [0, 1, 3, MOST_WRITTEN_OUT, MOST_WRITTEN_OUT + 1])
def test_written_out_loop_is_the_loop(length: int) -> None:
    # The loops are written out when something is captured in pieces for the first time.
    rockmate.Rockmate(nn.Sequential(nn.Linear(16, 16), Opaque()))(torch.randn(1, 16))
    model = nn.Sequential(*(nn.Linear(2, 2) for _ in range(length)))
    x = torch.randn(3, 2)
    assert torch.equal(sequential_forward(model, x), model(x))
