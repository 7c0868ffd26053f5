"""Inputs that share memory with each other, and outputs that share it with an input."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import rockmate


@pytest.mark.parametrize(("uses", "copied", "told"), [(1, False, False), (2, False, True), (2, True, False)])
def test_an_input_that_is_returned_and_read_twice_is_told_of(uses: int, copied: bool, told: bool) -> None:
    """Its gradient gets a term from outside of the compiled step: with two of the step's own, the sum has another order."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(8, 8)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            hidden = self.linear(x)
            for number in range(1, uses):
                hidden = hidden + torch.sin(x * number)
            return hidden, x.t().clone() if copied else x.t()

    planned = rockmate.Rockmate(Model(), cost="a100")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        planned(torch.randn(8, 8, requires_grad=True))
    assert any("in another order" in str(warning.message) for warning in seen) == told


class TwoInputs(nn.Module):
    """Both are read in the backward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.linear(x).sin() * torch.cos(y) + (x * y).sin()).sum()


class InPieces(nn.Module):
    """The second piece returns a view of what it reads three times; the third takes both."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.second = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.first(x).sin()
        torch._dynamo.graph_break()
        sums = self.second(hidden) + torch.sin(hidden * 1.3) + torch.cos(hidden * 0.7)
        view = hidden.t()
        torch._dynamo.graph_break()
        return sums.cos().sum() + (view.exp() * 0.37).sum() + (view * hidden.t()).sin().sum()


def gradients(model: nn.Module, run: Callable[..., Tensor], *derive: Callable[[Tensor], Tensor]) -> list[Tensor]:
    """Those of the input and of the parameters."""
    model.zero_grad()
    torch.manual_seed(1)
    x = torch.randn(8, 8, requires_grad=True)
    base = x * 1.0
    run(*(each(base) for each in derive)).backward()
    return [tensor.grad.clone() for tensor in (x, *model.parameters()) if tensor.grad is not None]


def with_budget(model: nn.Module, budget: str, *derive: Callable[[Tensor], Tensor]) -> rockmate.Rockmate:
    """Wrapped with the budget, which may be the least."""
    if budget != "least":
        return rockmate.Rockmate(model, budget=budget)
    with pytest.raises(rockmate.BudgetError) as refused:
        gradients(model, rockmate.Rockmate(model, budget=1), *derive)
    least = refused.value.min_budget_bytes
    assert least is not None
    return rockmate.Rockmate(model, budget=least)


@pytest.mark.parametrize("budget", ["100%", "least"])
@pytest.mark.parametrize("other", [Tensor.t, lambda x: x, lambda x: x.view(8, 8), lambda x: x[:, 2:3]])
def test_inputs_that_share_memory(other: Callable[[Tensor], Tensor], budget: str) -> None:
    torch.manual_seed(0)
    model = TwoInputs()
    both = (lambda x: x), other
    planned = with_budget(model, budget, *both)
    for expected, found in zip(gradients(model, model, *both), gradients(model, planned, *both), strict=True):
        assert torch.equal(expected, found)


def test_a_piece_that_returns_a_view_of_its_input_is_equal_and_not_warned_of() -> None:
    torch.manual_seed(0)
    model = InPieces()
    expected = gradients(model, model, lambda x: x)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        found = gradients(model, rockmate.Rockmate(model), lambda x: x)
    assert all(torch.equal(one, other) for one, other in zip(expected, found, strict=True))
    assert not any("in another order" in str(warning.message) for warning in seen)


class ShapesInPlace(nn.Module):
    """Sizes and strides of values change in place after others have read them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 8), nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.first(x[:, :6]).sin()
        plain = hidden.exp()
        hidden.t_()
        mixed = self.second(hidden)
        mixed.unsqueeze_(0)
        scaled = mixed * 1.5
        scaled.transpose_(1, 2).mul_(0.5)
        scaled.squeeze_(0)
        halves = hidden.view(2, 4, 8).clone().swapaxes_(0, 1)
        return scaled.exp().sum() + halves.cos().sum() + (hidden * plain).sin().sum()


@pytest.mark.parametrize("budget", ["100%", "least"])
def test_shapes_that_change_in_place(budget: str) -> None:
    torch.manual_seed(0)
    model = ShapesInPlace()
    planned = with_budget(model, budget, lambda x: x)
    for _ in range(2):
        expected, found = gradients(model, model, lambda x: x), gradients(model, planned, lambda x: x)
        assert all(torch.equal(one, other) for one, other in zip(expected, found, strict=True))
    assert isinstance(planned.plan, rockmate.Plan)
