"""Ctrl-C while a model is captured, priced and planned: KeyboardInterrupt at once, and nothing half-done is left behind."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import models
import pytest
import torch

import rockmate


@pytest.mark.parametrize("stage", ["costs", "chain"])
def test_interrupt_while_planning(stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCKMATE_CACHE_DIR", str(tmp_path))
    torch.manual_seed(0)
    model, inputs = models.gpt2()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    random_stream = torch.get_rng_state()
    seen: list[str] = []

    def interrupt(reached: str, share: float) -> None:
        if reached == stage and stage not in seen:
            os.kill(os.getpid(), signal.SIGINT)
        seen.append(reached)

    with pytest.raises(KeyboardInterrupt):
        rockmate.Rockmate(model, "50%", sample_inputs=inputs, on_progress=interrupt)
    assert seen.count(stage) <= 1, "it went on"
    assert not list(tmp_path.rglob("*.tmp"))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), random_stream)
    assert all(parameter.grad is None for parameter in model.parameters())

    # The same again, undisturbed, is as though nothing had been.
    again = rockmate.Rockmate(model, "50%", sample_inputs=inputs)
    assert again.plan is not None and again.plan.peak_bytes <= again.plan.budget_bytes
    again(**inputs).loss.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
