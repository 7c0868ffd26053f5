"""The wrapped model trains as the plain one does, to the bit, at every budget; the peak is the predicted one, to the byte."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import models
import pytest
from compare import Run, assert_same, train, wrapped

MODELS: dict[str, Callable[[], Any]] = {
    "gpt2": functools.partial(models.gpt2, layers=3),
    "llama": models.llama,
    "resnet": models.resnet,
    "regnet": models.regnet,
    "resnet50": models.resnet50,
}


@functools.cache
def plain(name: str) -> Run:
    return train(MODELS[name])


@functools.cache
def least_budget(name: str) -> int:
    return train(MODELS[name], wrapped("100%"), steps=1).model.plan.min_budget_bytes


@pytest.mark.parametrize("budget", ["100%", "50%", "minimum"])
@pytest.mark.parametrize("name", [n if n != "resnet50" else pytest.param(n, marks=pytest.mark.long) for n in MODELS])
def test_same_to_the_bit(name: str, budget: str) -> None:
    ours = train(MODELS[name], wrapped(least_budget(name) if budget == "minimum" else budget))
    assert_same(plain(name), ours)
    plan = ours.model.plan
    assert ours.activation_peak_bytes == plan.peak_bytes
    assert plan.peak_bytes <= plan.budget_bytes
    if budget == "100%":
        assert plan.recomputed == [] and plan.overhead == 0
    else:
        assert plan.recomputed


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(functools.partial(models.gpt2, layers=4), id="gpt2"),
        pytest.param(models.resnet, id="resnet", marks=pytest.mark.long),
        pytest.param(models.regnet, id="regnet", marks=pytest.mark.long),
        pytest.param(models.llama, id="llama", marks=pytest.mark.long),
    ],
)
def test_twenty_budgets(make: Callable[[], Any]) -> None:
    """Measured peak at most the budget, equal to the predicted one, and never higher for a lower budget."""
    reference = train(make, steps=1)
    first = train(make, wrapped("100%"), steps=1).model.plan
    low, high = first.min_budget_bytes, first.store_all_peak_bytes
    previous = 0
    for i in range(20):
        budget = low + (high - low) * i // 19
        ours = train(make, wrapped(budget), steps=2)
        assert_same(Run(reference.states[:1]), Run(ours.states[:1]))
        assert ours.activation_peak_bytes == ours.model.plan.peak_bytes
        assert previous <= ours.activation_peak_bytes <= budget
        previous = ours.activation_peak_bytes
