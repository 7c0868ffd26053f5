"""Models that ask whether they are being compiled, and compute otherwise then."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import zoo
from compare import assert_same, train, wrapped
from torch import nn
from torch.utils.checkpoint import checkpoint

import rockmate
from rockmate import plain_path
from rockmate.plan import PiecesPlan

Made = tuple[nn.Module, dict[str, Any]]


def is_tracing() -> bool:
    """A helper that passes the answer on, as transformers has it."""
    return torch.compiler.is_compiling()


class Asks(nn.Module):
    """Two layers between which ``branch`` asks and computes one way or another."""

    def __init__(self, branch: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.first, self.second, self.branch = nn.Linear(8, 32), nn.Linear(32, 4), branch

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.branch(self.first(x).tanh()).tanh()).square().mean()


def other_numbers(h: torch.Tensor) -> torch.Tensor:
    return h * 3 if torch.compiler.is_compiling() else h.sin() + h


def other_numbers_asked_otherwise(h: torch.Tensor) -> torch.Tensor:
    return h * 3 if torch._dynamo.is_compiling() or torch._utils.is_compiling() else h.sin() + h


def looks_at_data(h: torch.Tensor) -> torch.Tensor:
    if is_tracing():
        return torch.where(h.sum() > 1e9, h, h * 1.5)
    return h if h.sum() > 1e9 else h * 1.25


def loops(h: torch.Tensor) -> torch.Tensor:
    if torch.compiler.is_dynamo_compiling():
        return h * 2
    for _ in range(40):
        h = h + h / 40
    return h


def one_of_two_looks(h: torch.Tensor) -> torch.Tensor:
    return looks_at_data(other_numbers(h))


def making(branch: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[], Made]:
    return lambda: (Asks(branch), {"x": torch.randn(16, 8)})


def itself(output: Any) -> Any:
    return output


@pytest.fixture
def no_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


@pytest.mark.usefixtures("no_warning")
@pytest.mark.filterwarnings("ignore:.*is_compiling:FutureWarning")
@pytest.mark.parametrize("branch", [other_numbers, other_numbers_asked_otherwise, loops])
def test_the_plain_path_is_captured_whole(branch: Any) -> None:
    ours = train(making(branch), wrapped("80%"), itself)
    assert_same(train(making(branch), loss_of=itself), ours)
    assert isinstance(ours.model.plan, rockmate.Plan)


def compiled_values(branch: Any) -> list[torch.Tensor]:
    """What the model computes when it is compiled and nothing is recomputed."""
    run = train(making(branch), lambda model: torch.compile(model, backend="aot_eager"), itself)
    return [state["loss"] for state in run.states]


@pytest.mark.parametrize("branch", [looks_at_data, one_of_two_looks])
def test_a_plain_path_that_looks_at_the_data(branch: Any) -> None:
    """It is told where it asked, and trains on the compiled path from there."""
    with pytest.warns(
        RuntimeWarning, match=r"asks torch.compiler.is_compiling\(\) at .*test_plain_path.py:\d+ in looks_at_data"
    ):
        ours = train(making(branch), wrapped("80%"), itself)
    losses = [state["loss"] for state in ours.states]
    assert isinstance(ours.model.plan, rockmate.Plan)
    if branch is looks_at_data:
        assert losses == compiled_values(branch)
    else:  # the question whose plain path could be captured was still answered as in plain training
        assert losses != compiled_values(branch)
        assert losses == compiled_values(lambda h: looks_at_data(h.sin() + h))


@pytest.mark.usefixtures("no_warning")
def test_the_plain_path_in_pieces() -> None:
    ours = train(making(looks_at_data), wrapped("100%", told_compiling=False), itself)
    assert_same(train(making(looks_at_data), loss_of=itself), ours)
    assert isinstance(ours.model.plan, PiecesPlan)


@pytest.mark.usefixtures("no_warning")
@pytest.mark.parametrize("branch", [looks_at_data, other_numbers])
def test_the_compiled_path_on_demand(branch: Any) -> None:
    ours = train(making(branch), wrapped("80%", told_compiling=True), itself)
    assert [state["loss"] for state in ours.states] == compiled_values(branch)


def test_a_plain_path_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_path, "LONGEST_PATH", 30)
    with pytest.warns(RuntimeWarning, match="too long to be planned op by op.* in loops"):
        ours = train(making(loops), wrapped("80%"), itself)
    assert [state["loss"] for state in ours.states] == compiled_values(loops)


def test_a_plain_path_too_long_inside_of_a_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    def checkpointed(h: torch.Tensor) -> torch.Tensor:
        return checkpoint(loops, h, use_reentrant=False)  # type: ignore[no-any-return]

    monkeypatch.setattr(plain_path, "LONGEST_PATH", 30)
    with pytest.warns(RuntimeWarning, match="in loops"):
        ours = train(making(checkpointed), wrapped("80%"), itself)
    assert [state["loss"] for state in ours.states] == compiled_values(loops)


@pytest.mark.usefixtures("no_warning")
def test_long_models_that_ask_once_are_not_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is called by the functions that asked counts."""

    def asks_first(h: torch.Tensor) -> torch.Tensor:
        h = other_numbers(h)
        for _ in range(40):
            h = h + h / 40
        return h

    monkeypatch.setattr(plain_path, "LONGEST_PATH", 30)
    assert_same(train(making(asks_first), loss_of=itself), train(making(asks_first), wrapped("80%"), itself))


class Counts(Asks):
    """It is captured anew in every step, since a number of its own changes."""

    calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return super().forward(x) * self.calls


@pytest.mark.usefixtures("no_warning")
def test_captured_anew_it_stays_on_the_plain_path() -> None:
    def make() -> Made:
        return Counts(other_numbers), {"x": torch.randn(16, 8)}

    assert_same(train(make, loss_of=itself, steps=4), train(make, wrapped("80%"), itself, steps=4))


def breaks_anyway(h: torch.Tensor) -> torch.Tensor:
    h = other_numbers(h)
    return h if h.sum() > 1e9 else h * 1.25


@pytest.mark.usefixtures("no_warning")
def test_a_model_that_breaks_on_both_paths_takes_the_plain_one() -> None:
    ours = train(making(breaks_anyway), wrapped("100%"), itself)
    assert_same(train(making(breaks_anyway), loss_of=itself), ours)
    assert isinstance(ours.model.plan, PiecesPlan)


def test_estimate_takes_the_same_path() -> None:
    model, inputs = making(other_numbers)()
    assert rockmate.estimate(model, inputs).store_all_peak_bytes == _estimated(lambda h: h.sin() + h)
    with pytest.warns(RuntimeWarning, match="looks_at_data"):
        rockmate.estimate(*making(looks_at_data)())


def _estimated(branch: Any) -> int:
    model, inputs = making(branch)()
    return rockmate.estimate(model, inputs).store_all_peak_bytes


def test_what_it_is_told_is_checked() -> None:
    model, inputs = making(other_numbers)()
    with pytest.raises(ValueError, match="told_compiling is 'yes'"):
        rockmate.Rockmate(model, told_compiling="yes")
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=r"told_compiling is for rockmate\.Rockmate"):
        torch.compile(model, backend="rockmate", options={"told_compiling": False})(**inputs)


def test_a_scan_on_the_compiled_path() -> None:
    """Mamba scans where it is told that it is compiled: the same with and without recomputation."""
    stored = train(zoo.mamba, wrapped("100%", told_compiling=True), lambda output: output["loss"])
    least = stored.model.plan.min_budget_bytes
    ours = train(zoo.mamba, wrapped(least, told_compiling=True), lambda output: output["loss"])
    assert_same(stored, ours)
    assert ours.model.plan.recomputed and ours.activation_peak_bytes == ours.model.plan.peak_bytes <= least


def test_masks_of_transformers() -> None:
    """With a mask that has to be looked at, the compiled way to make one is taken; without, Llama trains as the plain model."""

    def masked() -> Made:
        model, inputs = zoo.llama()
        return model, {**inputs, "attention_mask": torch.ones_like(inputs["input_ids"])}

    with pytest.warns(RuntimeWarning, match="masking_utils.py"):
        ours = train(masked, wrapped("80%"))
    assert isinstance(ours.model.plan, rockmate.Plan)
