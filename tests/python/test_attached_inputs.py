"""Gradients reach the inputs that they belong to: of outputs that are not expected, and beside tokens of effects."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rockmate


class InPieces(nn.Module):
    """The second piece returns a loss, which is expected to be differentiated, and something that reads the same value."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = self.first(x)
        torch._dynamo.graph_break()
        return h * 1.5, h.sin().sum()


class Whole(nn.Module):
    """Of its two inputs one is read by the loss, the other by the second output alone."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(3, 3)

    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return self.last(a).sin().sum(), b.cos()


def _gradients(outputs: Any, leaves: list[Tensor]) -> list[Tensor | None]:
    torch.autograd.backward(outputs, [torch.full_like(output, 0.3) for output in outputs])
    found = [leaf.grad for leaf in leaves]
    for leaf in leaves:
        leaf.grad = None
    return found


def _assert_equal(ours: list[Tensor | None], plain: list[Tensor | None]) -> None:
    for mine, theirs in zip(ours, plain, strict=True):
        assert theirs is not None and mine is not None
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("budget", ["100%", 1_000_000])
def test_gradients_of_a_piece_beside_its_loss_in_the_first_step(budget: str | int) -> None:
    torch.manual_seed(0)
    plain = InPieces()
    model = rockmate.Rockmate(copy.deepcopy(plain), budget)
    x = torch.randn(2, 3)
    for _ in range(3):
        _assert_equal(_gradients(model(x), list(model.parameters())), _gradients(plain(x), list(plain.parameters())))


def test_an_input_computed_outside_that_the_loss_does_not_read() -> None:
    torch.manual_seed(0)
    plain = Whole()
    model = rockmate.Rockmate(copy.deepcopy(plain), "100%")
    x = torch.randn(2, 3, requires_grad=True)
    for _ in range(3):
        found = [
            _gradients(forward(x * 2, x * 3), [x, *module.parameters()]) for forward, module in ((model, model), (plain, plain))
        ]
        _assert_equal(*found)
        loss, _ = model(x * 2, x * 3)
        loss.backward()
        x.grad = None
        model.zero_grad()


class WithToken(nn.Module):
    """The second piece asserts that a matrix can be inverted: its graph has one input more than gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        torch._dynamo.graph_break()
        inverse = torch.linalg.inv(x.mT @ x * 0.1 + 2 * torch.eye(3))
        return (h.sin() * h.cos() + self.second(h) + self.second(h * 2)).sum() + (h @ inverse).sum()


def test_terms_of_gradients_beside_a_token() -> None:
    torch.manual_seed(0)
    plain = WithToken()
    model = rockmate.Rockmate(copy.deepcopy(plain), "100%")
    x = torch.randn(3, 3)  # all gradients of one shape: nothing but the values would tell a wrong place
    for _ in range(3):
        _assert_equal(_gradients([model(x)], list(model.parameters())), _gradients([plain(x)], list(plain.parameters())))
