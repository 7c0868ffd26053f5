"""What can't be met, or makes no sense, is refused before anything of the model runs."""

from __future__ import annotations

import models
import pytest
import torch

import rockmate


@pytest.mark.parametrize("budget", [0, -5, "abc", "", 1.5, -0.5, 0.0, "0%", None, True, [1], float("nan"), "8XB"])
def test_nonsense_is_refused_at_once(budget: object) -> None:
    model, _ = models.gpt2()
    with pytest.raises(rockmate.BudgetError, match=r"\[budget\]"):
        rockmate.Rockmate(model, budget=budget)


def test_too_small_names_the_least_budget_that_works() -> None:
    model, inputs = models.resnet()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(rockmate.BudgetError, match="can't be met") as caught:
        rockmate.Rockmate(model, budget="1KB")(**inputs)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    least = caught.value.min_budget_bytes
    assert least is not None and str(least) in str(caught.value)
    with pytest.raises(rockmate.BudgetError):
        rockmate.Rockmate(model, budget=least - 1, sample_inputs=inputs)
    wrapper = rockmate.Rockmate(model, budget=least)
    peak = rockmate.measure_peak(lambda: wrapper(**inputs).loss.backward(), exclude_grads_of=model)
    wrapper.zero_grad()
    peak = rockmate.measure_peak(lambda: wrapper(**inputs).loss.backward(), exclude_grads_of=model)
    assert peak.activation_bytes <= least


@pytest.mark.parametrize("budget", ["100%", 1.0, "1000GB", 10**12])
def test_enough_recomputes_nothing(budget: object) -> None:
    model, inputs = models.gpt2()
    wrapper = rockmate.Rockmate(model, budget=budget, sample_inputs=inputs)
    assert wrapper.plan is not None and wrapper.plan.recomputed == []


def test_unknown_option() -> None:
    model, _ = models.gpt2()
    with pytest.raises(ValueError, match="unknown option 'budgets'"):
        rockmate.Rockmate(model, budgets="50%")
    with pytest.raises(TypeError, match=r"torch\.nn\.Module"):
        rockmate.Rockmate(lambda x: x)  # type: ignore[arg-type]


def test_wrapping_twice_is_refused() -> None:
    model, _ = models.gpt2()
    with pytest.raises(rockmate.RockmateError, match="wrapped already"):
        rockmate.Rockmate(rockmate.Rockmate(model))
