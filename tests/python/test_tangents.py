"""Gradients that the plan did not expect: right at once, planned for from the next step on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import models
import pytest
import torch
from compare import assert_same, train, wrapped

LOSSES: dict[str, Callable[[Any], torch.Tensor]] = {
    "loss": lambda output: output.loss,
    "logits": lambda output: output.logits.square().mean(),
    "both": lambda output: output.loss + output.logits.square().mean(),
}


@pytest.mark.parametrize("budget", ["100%", "40%"])
@pytest.mark.parametrize("through", LOSSES)
def test_backward_through(through: str, budget: str) -> None:
    plain = train(models.gpt2, loss_of=LOSSES[through])
    ours = train(models.gpt2, wrapped(budget), loss_of=LOSSES[through])
    assert_same(plain, ours)
    assert len(ours.model.plans) == (1 if through == "loss" else 2)


def test_alternating() -> None:
    """One step through the loss, one through the logits, in turn."""

    def alternate() -> Callable[[Any], torch.Tensor]:
        turn = iter(["loss", "logits", "both", "loss", "logits"])
        return lambda output: LOSSES[next(turn)](output)

    plain = train(models.gpt2, loss_of=alternate(), steps=5)
    assert_same(plain, train(models.gpt2, wrapped("40%"), loss_of=alternate(), steps=5))


def test_planned_for_all_when_asked() -> None:
    ours = train(models.gpt2, wrapped("40%", tangents="all"), loss_of=LOSSES["both"])
    assert_same(train(models.gpt2, loss_of=LOSSES["both"]), ours)
    assert len(ours.model.plans) == 1
