"""What the forward pass holds for gradients that the plan does not expect is part of the budget."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import rockmate
from rockmate import measure_peak


class LossAndMore(nn.Module):
    """A loss, and beside it four dropouts in a row that it does not depend on."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = (nn.Linear(32, 32) for _ in range(3))
        self.d = nn.Linear(32, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = beside = torch.sin(self.a(x))
        for _ in range(4):
            beside = F.dropout(torch.cos(self.b(beside)), 0.3)
        return self.d(F.dropout(torch.sin(self.c(h)), 0.2)).square().mean(), beside


def test_generator_states_are_counted() -> None:
    """The draws would be made again for a gradient of the second output, so their states (5056 bytes each) are held."""
    torch.manual_seed(0)
    model, x = LossAndMore(), torch.randn(64, 32)
    budget: str | int = "100%"
    for _ in range(2):
        wrapped = rockmate.Rockmate(model, budget=budget)
        for _ in range(2):
            model.zero_grad()
            peak = measure_peak(lambda model=wrapped: model(x)[0].backward(), exclude_grads_of=model)
        states = [value.bytes for value in wrapped.plan.graph.values if value.name.endswith("generator_state")]
        assert states == [5056] * 4
        assert peak.activation_bytes <= wrapped.plan.peak_bytes <= wrapped.plan.budget_bytes
        budget = wrapped.plan.min_budget_bytes
