"""Refusals say what is wrong, where in the model, and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rockmate
from rockmate.compiled import why_not


class Fn(nn.Module):
    def __init__(self, function: Callable[[Any, Tensor], Any]) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 8)
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


class Outer(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Identity(), inner])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x.sum()


class Peeking(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x) if x.sum() > 0 else x


def message_of(model: nn.Module, **options: Any) -> str:
    with pytest.raises(rockmate.RockmateError) as caught:
        rockmate.Rockmate(model, **options)(torch.randn(4, 8))
    return str(caught.value)


def test_sizes_that_depend_on_data() -> None:
    """Under ``torch.compile`` Dynamo can be told to trace such an op; ``Rockmate`` goes on in pieces."""
    model = Fn(lambda m, x: m.inner(x)[m.inner(x).sum(1) > 0].sum())
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True), pytest.raises(Exception) as caught:
        torch.compile(model, backend="rockmate")(torch.randn(4, 8))
    assert re.search(r"\[capture\] .*has a size that depends on the data", str(caught.value))
    assert "test_refusals.py" in str(caught.value) and "Compute it outside" in str(caught.value)


def test_a_number_read_off_the_data_is_named_ahead() -> None:
    model = Fn(lambda m, x: m.inner(x) * x.mean().item())
    expected = r"in one piece: .*test_refusals\.py.* gives a number that depends on the data"
    with pytest.raises(rockmate.CaptureError, match=expected):
        rockmate.estimate(model, (torch.randn(4, 8),))


def test_numpy_random_under_torch_compile() -> None:
    """``Rockmate`` leaves it to NumPy, between pieces."""
    import numpy

    model = Fn(lambda m, x: m.inner(x).sum() * torch.from_numpy(numpy.random.rand(1)))
    with pytest.raises(Exception, match=r"\[capture\] the model draws from NumPy's random generator.*torch\.rand"):
        torch.compile(model, backend="rockmate")(torch.randn(4, 8))


def test_estimate_needs_the_whole_model_and_says_where_it_breaks() -> None:
    with pytest.raises(rockmate.CaptureError) as caught:
        rockmate.estimate(Outer(Peeking()), (torch.randn(4, 8),))
    message = str(caught.value)
    assert message.startswith("[capture] the model can't be captured in one piece: Data-dependent branching")
    assert "module 'layers.1'" in message and "test_refusals.py:" in message and "x.sum() > 0" in message
    assert "piece by piece" in message


def test_sample_inputs_of_a_model_in_pieces_plan_nothing_and_move_nothing(caplog: pytest.LogCaptureFixture) -> None:
    model = Outer(Peeking())
    stream = torch.get_rng_state()
    wrapper = rockmate.Rockmate(model, sample_inputs=(torch.ones(4, 8),))
    assert wrapper.plan is None and torch.equal(stream, torch.get_rng_state())
    assert any("can't be captured in one piece" in record.getMessage() for record in caplog.records)
    wrapper(torch.ones(4, 8)).backward()
    assert model.layers[1].inner.weight.grad is not None


def test_models_that_are_no_models() -> None:
    with pytest.raises(TypeError, match=r"\[rockmate\] model is a function; give a torch.nn.Module"):
        rockmate.Rockmate(lambda x: x)  # type: ignore[arg-type]
    model = nn.Linear(2, 2)
    model.forward = lambda x: x  # type: ignore[method-assign]
    with pytest.raises(rockmate.RockmateError, match="forward was replaced on the instance; put it in a class"):
        rockmate.Rockmate(model)


def test_why_not_without_a_place() -> None:
    assert why_not(RuntimeError("first\nExplanation: because.\nmore"), nn.Linear(1, 1)) == "first (because)"
