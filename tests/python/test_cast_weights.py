"""Weights that autocast casts once in plain training, and that two captured graphs cast apart: a warning tells of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rockmate

MESSAGE = r"\[autocast\] a weight is used by two calls of the model, or by two of its pieces"


def autocast(**options: Any) -> Any:
    return torch.autocast("cpu", torch.bfloat16, **options)


@contextmanager
def no_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.up(x).sin())


class Broken(Net):
    """One layer is used on both sides of a graph break."""

    def forward(self, x: Tensor) -> Tensor:
        h = super().forward(x)
        torch._dynamo.graph_break()
        return self.down(h.repeat(1, 2).sin())


class CastsInside(Broken):
    def forward(self, x: Tensor) -> Tensor:
        with autocast():
            return super().forward(x)


def gradients(train: Callable[[nn.Module], None], model: nn.Module) -> list[Tensor]:
    model.zero_grad()
    train(model)
    return [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]


def both(model: nn.Module, train: Callable[[nn.Module], None], **options: Any) -> tuple[list[Tensor], list[Tensor]]:
    return gradients(train, model), gradients(train, rockmate.Rockmate(model, **options))


def in_one_region(model: nn.Module) -> None:
    x = torch.linspace(-1, 1, 64).reshape(8, 8)
    with autocast():
        loss = model(x).square().mean() + model(x + 1).square().mean()
    loss.float().backward()


def in_two_regions(model: nn.Module) -> None:
    x = torch.linspace(-1, 1, 64).reshape(8, 8)
    for part in (x, x + 1):
        with autocast():
            loss = model(part).square().mean()
        loss.float().backward()


def backward_between(model: nn.Module) -> None:
    x = torch.linspace(-1, 1, 64).reshape(8, 8)
    with autocast():
        for part in (x, x + 1):
            model(part).square().mean().float().backward()


def without_cache(model: nn.Module) -> None:
    x = torch.linspace(-1, 1, 64).reshape(8, 8)
    with autocast(cache_enabled=False):
        loss = model(x).square().mean() + model(x + 1).square().mean()
    loss.float().backward()


def without_autocast(model: nn.Module) -> None:
    x = torch.linspace(-1, 1, 64).reshape(8, 8)
    (model(x).square().mean() + model(x + 1).square().mean()).backward()


def one_call(model: nn.Module) -> None:
    model(torch.linspace(-1, 1, 64).reshape(8, 8)).square().mean().float().backward()


def under_autocast(model: nn.Module) -> None:
    with autocast():
        loss = model(torch.linspace(-1, 1, 64).reshape(8, 8)).square().mean()
    loss.float().backward()


def test_two_calls_in_one_region_are_told_of() -> None:
    torch.manual_seed(0)
    with pytest.warns(RuntimeWarning, match=MESSAGE):
        plain, ours = both(Net(), in_one_region)
    for expected, got in zip(plain, ours, strict=True):
        torch.testing.assert_close(got, expected, rtol=0.02, atol=1e-3)


@pytest.mark.parametrize("train", [in_two_regions, backward_between, without_cache, without_autocast])
def test_where_casts_are_not_shared_all_is_equal(train: Callable[[nn.Module], None]) -> None:
    torch.manual_seed(0)
    with no_warning():
        plain, ours = both(Net(), train)
    assert all(torch.equal(expected, got) for expected, got in zip(plain, ours, strict=True))


@pytest.mark.parametrize(("model", "train"), [(Broken, under_autocast), (CastsInside, one_call)])
def test_two_pieces_with_one_weight_are_told_of(model: type[nn.Module], train: Callable[[nn.Module], None]) -> None:
    torch.manual_seed(0)
    with pytest.warns(RuntimeWarning, match=MESSAGE):
        both(model(), train)


def test_under_torch_compile() -> None:
    torch.manual_seed(0)
    model = torch.compile(Net(), backend="rockmate")
    with pytest.warns(RuntimeWarning, match=MESSAGE):
        in_one_region(model)
