"""A new input size is planned by itself; one seen before costs nothing."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch._dynamo
from torch import Tensor, nn

import rockmate
from rockmate import backend


class Captures:
    """Counts what is traced and what is planned."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.traced = 0
        compile = backend._compile

        def counting(*args: Any) -> Any:
            self.traced += 1
            return compile(*args)

        monkeypatch.setattr(backend, "_compile", counting)


@pytest.fixture
def captures(monkeypatch: pytest.MonkeyPatch) -> Iterator[Captures]:
    yield Captures(monkeypatch)


def mlp() -> nn.Module:
    torch.manual_seed(0)
    hidden = [layer for _ in range(5) for layer in (nn.Linear(32, 32), nn.GELU(), nn.GELU())]
    return nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Dropout(0.2), *hidden, nn.Linear(32, 1))


class Broken(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = mlp()[:6], mlp()[6:]

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        torch._dynamo.graph_break()
        return self.second(h)


def assert_equal_steps(model: nn.Module, wrapper: nn.Module, sizes: list[int]) -> None:
    for number, rows in enumerate(sizes):
        x = torch.randn(rows, 8)
        gradients = []
        for m in (model, wrapper):
            torch.manual_seed(number)
            m(x).square().sum().backward()
            gradients.append([p.grad.clone() for p in m.parameters()])
            m.zero_grad()
        assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True)), rows


SIZES = [64, 16, 128, 24, 48, 40]


def test_rockmate_plans_each_size_once(captures: Captures) -> None:
    model = mlp()
    wrapper = rockmate.Rockmate(copy.deepcopy(model), budget="70%")
    assert_equal_steps(model, wrapper, SIZES)
    assert captures.traced == len(SIZES) == len(wrapper.plans)
    assert len({plan.budget_bytes for plan in wrapper.plans}) == len(SIZES)  # shares are of each size's own peak
    assert_equal_steps(model, wrapper, SIZES * 2)
    assert captures.traced == len(SIZES) == len(wrapper.plans)


def test_torch_compile_plans_each_size_once(captures: Captures) -> None:
    """From the second size on, Dynamo hands over one graph for all sizes; the first one comes back through it, once."""
    model = mlp()
    plans: list[Any] = []
    wrapper = torch.compile(copy.deepcopy(model), backend="rockmate", options={"budget": "70%", "on_plan": plans.append})
    assert_equal_steps(model, wrapper, SIZES)
    assert captures.traced == len(plans) == len(SIZES)
    assert_equal_steps(model, wrapper, SIZES[:1])
    known = captures.traced, len(plans)
    assert known[1] == len(SIZES) + 1
    assert_equal_steps(model, wrapper, SIZES * 2)
    assert (captures.traced, len(plans)) == known
    assert all(plan.peak_bytes <= plan.budget_bytes for plan in plans)


@pytest.mark.parametrize("compiled", [False, True], ids=["Rockmate", "torch.compile"])
def test_pieces_plan_each_size_once(captures: Captures, compiled: bool) -> None:
    model = Broken()
    twin = copy.deepcopy(model)
    wrapper = torch.compile(twin, backend="rockmate", options={"budget": 10**6}) if compiled else rockmate.Rockmate(twin, 10**6)
    sizes = [64, 64, 64, 16, 16, 16, 40, 40, 40]
    assert_equal_steps(model, wrapper, sizes + [64, 16, 40] * 2)
    known = captures.traced
    assert_equal_steps(model, wrapper, [64, 16, 40, 40, 16, 64])
    assert captures.traced == known


def test_modes_and_dtypes_are_told_apart(captures: Captures) -> None:
    model = mlp()
    wrapper = rockmate.Rockmate(copy.deepcopy(model), budget="100%")
    assert_equal_steps(model, wrapper, [8])
    for m in (model, wrapper):
        m.eval()
    assert_equal_steps(model, wrapper, [8])
    for m in (model, wrapper):
        m.train().double()
    x = torch.randn(8, 8, dtype=torch.float64)
    gradients = []
    for m in (model, wrapper):
        torch.manual_seed(0)
        m(x).sum().backward()
        gradients.append([p.grad.clone() for p in m.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))
    assert captures.traced == 3
