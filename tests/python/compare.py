"""Train a model plainly and through Rockmate, and hold one against the other to the bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

import rockmate
from rockmate import measure_peak


@dataclass
class Run:
    """What three steps left behind, step by step, and the peak of the last one."""

    states: list[dict[str, Any]] = field(default_factory=list)
    activation_peak_bytes: int = 0
    model: Any = None


def train(
    make: Callable[[], tuple[nn.Module, dict[str, Any]]],
    wrap: Callable[[nn.Module], nn.Module] = lambda model: model,
    loss_of: Callable[[Any], torch.Tensor] = lambda output: output.loss,
    steps: int = 3,
) -> Run:
    """Train with plain SGD from a fixed seed. The random stream is set once, before the model is wrapped."""
    torch.manual_seed(0)
    model, inputs = make()
    torch.manual_seed(1)
    model = wrap(model)
    run = Run(model=model)
    for _ in range(steps):
        kept: list[torch.Tensor] = []

        def step(kept: list[torch.Tensor] = kept) -> Any:
            output = model(**inputs)
            loss = loss_of(output)
            kept.append(loss)
            loss.backward()
            return output

        peak = measure_peak(step, exclude_grads_of=model)
        run.activation_peak_bytes = peak.activation_bytes
        run.states.append(
            {
                "loss": kept[0].detach().clone(),
                **{f"grad {name}": None if p.grad is None else p.grad.clone() for name, p in model.named_parameters()},
                **{f"buffer {name}": buffer.clone() for name, buffer in model.named_buffers()},
                "random stream": torch.get_rng_state(),
            }
        )
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.grad is not None:
                    parameter -= 0.01 * parameter.grad
                parameter.grad = None
    return run


def assert_same(plain: Run, ours: Run) -> None:
    """Every loss, gradient, buffer and random state, at every step, equal to the bit."""
    for step, (expected, got) in enumerate(zip(plain.states, ours.states, strict=True)):
        assert expected.keys() == got.keys()
        for name, value in expected.items():
            if value is None:
                assert got[name] is None, f"step {step}: {name} should be None"
            else:
                assert got[name] is not None and torch.equal(value, got[name]), f"step {step}: {name} differs"


def wrapped(budget: Any, **options: Any) -> Callable[[nn.Module], nn.Module]:
    return lambda model: rockmate.Rockmate(model, budget=budget, **options)
