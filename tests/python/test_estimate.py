"""Estimates before training: for real models, and for models that hold no memory."""

from __future__ import annotations

import itertools
from typing import Any

import models
import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

import rockmate


def figures(estimate: rockmate.Estimate) -> tuple[object, ...]:
    return (
        estimate.store_all_peak_bytes,
        estimate.min_budget_bytes,
        estimate.curve,
        estimate.parameter_bytes,
        estimate.gradient_bytes,
    )


def test_fake_and_meta_models_are_estimated_like_real_ones() -> None:
    model, inputs = models.gpt2()
    expected = figures(rockmate.estimate(model, inputs, cost="v100"))
    torch._dynamo.reset()
    mode = FakeTensorMode()
    with mode:
        fake, fake_inputs = models.gpt2()
    assert figures(rockmate.estimate(fake, fake_inputs, cost="v100")) == expected
    assert not mode.allow_non_fake_inputs  # left as it was
    torch._dynamo.reset()
    assert figures(rockmate.estimate(fake, inputs, cost="v100")) == expected
    torch._dynamo.reset()
    with torch.device("meta"):
        meta, meta_inputs = models.gpt2()
    assert figures(rockmate.estimate(meta, meta_inputs, cost="v100")) == expected
    assert all(parameter.device.type == "meta" for parameter in meta.parameters())


def test_nothing_of_the_model_runs() -> None:
    model, inputs = models.resnet()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    random_stream = torch.get_rng_state()
    estimate = rockmate.estimate(model, inputs)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), random_stream)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert estimate.cost == "measured" and estimate.store_all_time_us > 0


def test_estimate_agrees_with_training() -> None:
    model, inputs = models.gpt2()
    estimate = rockmate.estimate(model, inputs)
    least = estimate.min_budget_bytes
    wrapper = rockmate.Rockmate(model, budget=least)

    def step() -> object:
        output = wrapper(**inputs)  # held to the end, as the plan assumes: the logits count
        output.loss.backward()
        return output

    for _ in range(2):
        wrapper.zero_grad()
        peak = rockmate.measure_peak(step, exclude_grads_of=model)
    assert peak.activation_bytes == wrapper.plan.peak_bytes <= estimate.curve[0].peak_bytes == least
    parameters = list(model.parameters())  # tied ones are listed once
    buffers = sum(buffer.untyped_storage().nbytes() for buffer in model.buffers())
    assert estimate.parameter_bytes == sum(p.nbytes for p in parameters) + buffers
    assert estimate.gradient_bytes == sum(p.grad.nbytes for p in parameters if p.grad is not None)
    assert estimate.least_total_bytes == least + estimate.parameter_bytes + estimate.gradient_bytes


def test_sizes_worked_out_by_hand() -> None:
    # x: 8 x 16 floats. hidden = 8 x 64 floats = 2048 bytes, kept for the backward pass. Parameters: 16*64 + 64*4 floats.
    model = nn.Sequential(nn.Linear(16, 64, bias=False), nn.ReLU(), nn.Linear(64, 4, bias=False))
    estimate = rockmate.estimate(model, (torch.randn(8, 16),), cost="cpu")
    assert estimate.parameter_bytes == estimate.gradient_bytes == 4 * (16 * 64 + 64 * 4)
    assert estimate.store_all_peak_bytes >= 2048


class TwoWideOutputs(nn.Module):
    """The loss beside two outputs of 64 x 512 floats, 131072 bytes each."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 512, bias=False)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        logits = self.linear(x)
        return {"loss": logits.mean(), "logits": logits, "twice": logits * 2}


def test_gradients_that_never_come_cost_nothing() -> None:
    # Both outputs are held; backward adds the gradient of logits, another 131072 bytes. That is the peak, and no gradients of
    # the outputs count, which would make four times 131072 bytes where backward begins.
    model, x = TwoWideOutputs(), torch.randn(64, 8)
    estimate = rockmate.estimate(model, (x,))
    assert 3 * 131072 <= estimate.store_all_peak_bytes < 4 * 131072
    wrapper = rockmate.Rockmate(model, "100%", sample_inputs=(x,))

    def step() -> object:
        outputs = wrapper(x)
        outputs["loss"].backward()
        return outputs

    assert rockmate.measure_peak(step, exclude_grads_of=model).activation_bytes == estimate.store_all_peak_bytes


def test_table() -> None:
    model, inputs = models.gpt2()
    estimate = rockmate.estimate(model, inputs, cost="h100")
    rows = estimate.rows()
    assert [label for label, _, _ in rows] == [f"{share}%" for share in range(100, 0, -10)] + ["least"]
    assert rows[0][2] is not None and rows[0][2].overhead == 0.0
    assert rows[-1][2] == estimate.curve[0]
    for _, budget_bytes, point in rows:
        assert point is None or point.peak_bytes <= budget_bytes
    for faster, slower in itertools.pairwise(rows[:-1]):
        assert slower[2] is None or (faster[2] is not None and faster[2].overhead <= slower[2].overhead)
    text = str(estimate)
    assert "h100" in text and "can't be met" in text and len(text.splitlines()) == 13
    assert estimate._repr_html_().count("<tr>") == 12
    assert estimate.at("1KB") is None and estimate.at(1.0) == rows[0][2]
    with pytest.raises(rockmate.BudgetError):
        estimate.at("abc")


def plain_estimate() -> rockmate.Estimate:
    """Parameters 1000 bytes, gradients 800; 5000 bytes of activations, or 2000 with 50 % overhead, or 3000 with 10 %."""
    points = [rockmate.plan.CurvePoint(2000, 0.5), rockmate.plan.CurvePoint(3000, 0.1), rockmate.plan.CurvePoint(5000, 0.0)]
    nothing: Any = None
    return rockmate.Estimate(
        store_all_peak_bytes=5000,
        min_budget_bytes=2000,
        curve=points,
        store_all_time_us=100.0,
        parameter_bytes=1000,
        gradient_bytes=800,
        cost="cpu",
        name="<a model>",
        plan=nothing,
    )


def test_does_it_fit() -> None:
    estimate = plain_estimate()
    # 7000 - 1000 - 800 - 2 * 800 for AdamW's two states leaves 3600.
    answer = estimate.fits(7000)
    assert answer and answer.optimizer_bytes == 1600 and answer.activation_bytes == 3600
    assert answer.point is not None and answer.point.peak_bytes == 3000 and answer.missing_bytes == 0
    assert str(answer).startswith("fits 6.836 KiB with 10.0% overhead") and "budget=3600" in str(answer)
    # 5399 leaves 1999 bytes, one below the least.
    short = estimate.fits("5399B")
    assert not short and short.missing_bytes == 1 and "1 B are missing" in str(short)
    assert estimate.fits(5400)
    assert estimate.fits(5399, optimizer="sgd").activation_bytes == 3599
    assert estimate.fits(5399, optimizer=1599)
    assert not estimate.fits(100) and estimate.fits(100).missing_bytes == 5300
    assert estimate.fits("16GiB").activation_bytes == 16 * 2**30 - 3400
    for nonsense in ("50%", 0.5, True, "abc", -1):
        with pytest.raises(rockmate.BudgetError):
            estimate.fits(nonsense)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="choose one of sgd"):
        estimate.fits(7000, optimizer="no such optimizer")
    with pytest.raises(ValueError, match="0 or more bytes"):
        estimate.fits(7000, optimizer=-1)


def test_notebook() -> None:
    text = plain_estimate()._repr_html_()
    assert "&lt;a model&gt;" in text and "<script" not in text and "http" not in text
    assert text.count("<svg") == text.count("</svg>") == text.count("<polyline") == 1
    # A plan serves all budgets up to the next one: two corners for each later plan, and the end.
    assert len(text.split('polyline points="')[1].split('"')[0].split()) == 6


class Broken(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.linear(x)
        torch._dynamo.graph_break()
        return self.linear(x).sum()


def test_what_cannot_be_estimated_is_refused() -> None:
    with pytest.raises(rockmate.CaptureError, match="in one piece"):
        rockmate.estimate(Broken(), (torch.randn(2, 4),), cost="cpu")
    frozen = nn.Linear(4, 4).requires_grad_(False)
    with pytest.raises(rockmate.RockmateError, match="nothing is trained"):
        rockmate.estimate(frozen, (torch.randn(2, 4),), cost="cpu")
    with pytest.raises(ValueError, match="unknown"):
        rockmate.estimate(nn.Linear(4, 4), (torch.randn(2, 4),), cost="no such device")
    with FakeTensorMode():
        model = nn.Linear(4, 4)
    with FakeTensorMode():
        x = torch.randn(2, 4)
    with pytest.raises(ValueError, match="several FakeTensorModes"):
        rockmate.estimate(model, (x,), cost="cpu")
