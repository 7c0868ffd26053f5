"""Plans compiled by Inductor train as the plain model does, up to the rounding of fused kernels, and draw the same numbers."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from compare import Run, train, wrapped
from models import gpt2, resnet
from torch import nn
from torch.nn import functional as F

import rockmate
from rockmate import inductor
from rockmate.lower_plans import LowerPlans, Trial
from rockmate.options import Options
from rockmate.plan import CurvePoint

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}
TOLERANCE = 1e-4  # of the largest entry: float32 sums in another order, over three steps


class Transformer(nn.Module):
    """Embedding tied to the output layer, attention and MLP with dropout, one parameter that nothing reads."""

    def __init__(self, layers: int = 2, width: int = 32) -> None:
        super().__init__()
        self.embedding = nn.Embedding(48, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.qkv = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.mlp = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.unused = nn.Parameter(torch.zeros(3))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = F.dropout(self.embedding(ids), 0.1)
        for norm, qkv, mlp in zip(self.norms, self.qkv, self.mlp, strict=True):
            q, k, v = qkv(norm(x)).chunk(3, dim=-1)
            x = x + F.dropout(F.softmax(q @ k.transpose(1, 2) / 5, dim=-1), 0.1) @ v
            x = x + F.dropout(F.gelu(mlp(x)), 0.2)
        return F.cross_entropy((x @ self.embedding.weight.t()).flatten(0, 1), ids.flatten())


class ConvNet(nn.Module):
    """Convolution, batch normalization, ReLU in place, a frozen weight, and a buffer of its own updated in forward."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(8 if i else 3, 8, 3, padding=1, bias=False) for i in range(4))
        self.norms = nn.ModuleList(nn.BatchNorm2d(8) for _ in range(4))
        self.head = nn.Linear(8, 5)
        self.convs[1].weight.requires_grad_(False)
        self.register_buffer("average", torch.zeros(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = F.relu_(norm(conv(x)))
        features = x.mean((2, 3))
        self.average.lerp_(features.detach().mean(0), 0.1)
        return self.head(features).square().mean()


def transformer() -> tuple[nn.Module, dict[str, Any]]:
    return Transformer(), {"ids": torch.randint(0, 48, (4, 16))}


def conv_net() -> tuple[nn.Module, dict[str, Any]]:
    return ConvNet(), {"x": torch.randn(4, 3, 16, 16)}


def assert_close(plain: Run, ours: Run) -> None:
    for step, (expected, got) in enumerate(zip(plain.states, ours.states, strict=True)):
        for name, value in expected.items():
            other = got[name]
            if value is None or not value.is_floating_point():
                assert other is None if value is None else torch.equal(value, other), f"step {step}: {name}"
            else:
                bound = TOLERANCE * max(value.abs().max().item(), 1e-3)
                assert (value - other).abs().max().item() <= bound, f"step {step}: {name}"


def itself(output: Any) -> Any:
    return output


@pytest.mark.parametrize(("make", "share"), [(transformer, 0.6), (conv_net, 0.6)])
def test_trains_as_plain_does(make: Any, share: float, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "rockmate")
    plain = train(make, loss_of=itself, steps=6)  # as many as the search for a plan takes, and one
    ours = train(make, wrapped(share, compiler="inductor", cost="cpu"), loss_of=itself, steps=6)
    assert_close(plain, ours)
    plan = ours.model.plan
    assert plan.recomputed and plan.compiler == "inductor" and "unfused" in str(plan)
    assert ours.activation_peak_bytes < 0.8 * plain.activation_peak_bytes
    assert ours.activation_peak_bytes <= plan.budget_bytes
    value, unit = _told(caplog)[-1].removeprefix("[inductor] the compiled step held ").split()[:2]
    assert float(value) * UNITS[unit] == pytest.approx(ours.activation_peak_bytes, rel=0.01)


def _told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.message.startswith("[inductor] the compiled step held")]


def test_a_step_over_the_budget_is_planned_lower(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the first plan is measured to hold more, the next step runs by a lower one, on the same numbers."""
    measured: list[int] = []
    judge = LowerPlans.judge

    def first_over_the_budget(self: LowerPlans[Any], plan: rockmate.Plan, measured_bytes: int, compiled: Any) -> Any:
        measured.append(measured_bytes if measured else plan.budget_bytes + 1)
        return judge(self, plan, measured[-1], compiled)

    monkeypatch.setattr(LowerPlans, "judge", first_over_the_budget)
    plain = train(transformer, loss_of=itself, steps=4)
    plans: list[rockmate.Plan] = []
    ours = train(transformer, wrapped(0.5, compiler="inductor", cost="cpu", on_plan=plans.append), loss_of=itself, steps=4)
    assert_close(plain, ours)
    assert "The next step runs by a plan for" in _told(caplog)[0]
    assert len(plans) == len(measured) > 1
    assert [plan.budget_bytes for plan in plans] == [plans[0].budget_bytes] * len(plans)
    assert all(after.peak_bytes < before.peak_bytes for before, after in itertools.pairwise(plans))
    assert ours.activation_peak_bytes <= plans[0].budget_bytes


def test_what_is_computed_again_waits(caplog: pytest.LogCaptureFixture) -> None:
    """Near the least budget the compiled step keeps it, since nothing is computed again long before its turn."""
    caplog.set_level("INFO", "rockmate")
    ours = train(transformer, wrapped(0.45, compiler="inductor", cost="cpu"), loss_of=itself)
    assert ours.model.plan.recomputed and len(_told(caplog)) == 1
    assert ours.activation_peak_bytes <= ours.model.plan.budget_bytes


def _plan(peak_bytes: int, budget_bytes: int = 100) -> Any:
    """A point of a curve with peaks 100, 90, 70 and 40, as far as LowerPlans looks at it."""
    curve = [CurvePoint(peak, 1 - peak / 100) for peak in (100, 90, 70, 40)]
    return SimpleNamespace(peak_bytes=peak_bytes, budget_bytes=budget_bytes, curve=curve)


def test_lower_plans() -> None:
    assert LowerPlans[str]().judge(_plan(100), 100, "first") is None
    search = LowerPlans[str]()
    assert search.judge(_plan(100), 125, "first") == 70  # 100 * 100 / 125 = 80, and the next peak below is 70
    assert search.judge(_plan(70), 99, "second") is None
    search = LowerPlans[str]()
    assert search.judge(_plan(100), 101, "first") == 90  # at least one plan lower
    assert search.judge(_plan(90), 110, "second") == 70  # 90 * 100 / 110 = 81
    assert search.judge(_plan(70), 400, "third") == 40  # 17: nothing so low, but there is a lower one


def test_when_no_lower_plan_keeps_the_budget(caplog: pytest.LogCaptureFixture) -> None:
    """The one that held least stays, and a warning says what would keep the budget."""
    search = LowerPlans[str]()
    assert search.judge(_plan(90), 104, "first") == 70
    assert search.judge(_plan(70), 130, "second") == 40
    back = search.judge(_plan(40), 120, "third")
    assert isinstance(back, Trial) and back.compiled == "first"
    assert 'held least, 104 B. Ask for budget=104, or for compiler="native"' in caplog.records[-1].message


class TwoHeads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits = self.head(F.dropout(torch.tanh(self.body(x)), 0.3))
        return logits.square().mean(), logits


def _gradients(model: nn.Module, calls: Any) -> list[torch.Tensor]:
    torch.manual_seed(3)
    found = []
    for x, uses_logits in calls:
        loss, logits = model(x)
        (loss + logits.sum() if uses_logits else loss).backward()
        found += [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
        model.zero_grad(set_to_none=True)
    return found


def test_unplanned_gradients_and_other_shapes() -> None:
    """The first backward pass that comes through the logits runs natively, on what the compiled forward pass saved."""
    torch.manual_seed(0)
    model = TwoHeads()
    calls = [(torch.randn(4, 8), False), (torch.randn(4, 8), True), (torch.randn(6, 8), False)]
    expected = _gradients(model, calls)
    compiled = torch.compile(model, backend="rockmate", options={"compiler": "inductor"}, dynamic=False)
    for want, got in zip(expected, _gradients(compiled, calls), strict=True):
        torch.testing.assert_close(got, want)


def test_draws_are_called_as_they_are() -> None:
    """Inductor's own bernoulli fills a buffer that other kernels may have read before."""
    from torch._inductor.utils import run_and_get_code

    torch.manual_seed(0)
    model = rockmate.Rockmate(TwoHeads(), compiler="inductor")
    _, codes = run_and_get_code(lambda: model(torch.randn(5, 8))[0].backward())
    assert any("aten.bernoulli" in code for code in codes)
    assert not any("bernoulli_" in code for code in codes)


def test_unknown_compilers_are_refused() -> None:
    with pytest.raises(ValueError, match=r"compiler is 'tvm'; choose 'native' or 'inductor'"):
        rockmate.Rockmate(nn.Linear(2, 2), compiler="tvm")
    assert Options().compiler == "native"


def test_no_cpp_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused before anything runs, with what to do."""
    from torch._inductor import cpp_builder
    from torch._inductor.exc import InvalidCxxCompiler

    def none_found() -> str:
        raise InvalidCxxCompiler

    monkeypatch.setattr(cpp_builder, "get_cpp_compiler", none_found)
    with pytest.raises(inductor.InductorError, match=r"no C\+\+ compiler was found.*CXX"):
        rockmate.Rockmate(nn.Linear(2, 2), compiler="inductor")(torch.randn(1, 2))


@pytest.mark.long
@pytest.mark.parametrize(("make", "budget"), [(gpt2, "100%"), (resnet, "100%"), (gpt2, "40%"), (resnet, "45%")])
def test_real_models_beside_inductor_alone(make: Any, budget: str) -> None:
    """As near to plain PyTorch as ``torch.compile`` with Inductor and the same draws is."""
    plain = train(make)
    ours = train(make, wrapped(budget, compiler="inductor"))
    assert_close(plain, ours)
    with torch._inductor.config.patch(fallback_random=True):
        alone = train(make, torch.compile)
    names = [name for name, value in plain.states[0].items() if name.startswith("grad ") and value is not None]
    assert len(names) == len([name for name in alone.states[0] if name.startswith("grad ")])
    torch.testing.assert_close(ours.states[0]["loss"], alone.states[0]["loss"])
    for name in names:
        other = alone.states[0][name.replace("grad ", "grad _orig_mod.")]
        bound = TOLERANCE * max(other.abs().max().item(), 1e-3)
        assert (ours.states[0][name] - other).abs().max().item() <= bound, name


@pytest.mark.long
def test_pieces() -> None:
    """A model that breaks in two is compiled piece by piece from its second step on."""

    class Broken(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(16, 64), nn.Linear(64, 16)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = F.dropout(torch.tanh(self.first(x)), 0.2)
            torch._dynamo.graph_break()
            return self.second(torch.sigmoid(h)).square().mean()

    def make() -> tuple[nn.Module, dict[str, Any]]:
        return Broken(), {"x": torch.randn(32, 16)}

    plain = train(make, loss_of=itself)
    ours = train(make, wrapped("100%", compiler="inductor"), loss_of=itself)
    assert_close(plain, ours)
    assert ours.model.plan.compiler == "inductor"
