"""M: the budget, and what planning costs."""

from __future__ import annotations

import gc
import json
import resource
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from harness import Case, assert_same, train, weighted
from parts import Fn, mlp, rows
from registry import equal, pattern
from torch import Tensor, nn

import rockmate
from rockmate import _planner


def deep_stack(depth: int = 6) -> nn.Module:
    layer = lambda: nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 64), nn.GELU(), nn.Dropout(0.1), nn.Linear(64, 16))  # noqa: E731
    return Fn(lambda m, x: sum_of(m.layers, x), layers=nn.ModuleList(layer() for _ in range(depth)))


def sum_of(layers: nn.ModuleList, x: Tensor) -> Tensor:
    for layer in layers:
        x = x + layer(x)
    return x


@pattern("M1", "20 budgets over a deep stack: within the budget, and a lower one never has a higher peak")
def test_twenty_budgets() -> None:
    def make() -> Case:
        return Case(deep_stack(), rows(), steps=2)

    plain = train(make)
    first = train(make, lambda model: rockmate.Rockmate(model, budget="100%")).model.plan
    previous = 0
    for i in range(20):
        budget = first.min_budget_bytes + (first.store_all_peak_bytes - first.min_budget_bytes) * i // 19
        ours = train(make, lambda model, budget=budget: rockmate.Rockmate(model, budget=budget))
        assert_same(plain, ours, str(budget))
        assert previous <= ours.peak_bytes <= budget
        assert previous <= ours.model.plan.peak_bytes <= budget
        previous = ours.peak_bytes


@pattern(
    "M2", "at the plain peak, above it and far above: nothing is recomputed; just below the least: refused, and it is named"
)
def test_budgets_at_the_edges() -> None:
    model, inputs = deep_stack(), rows()
    plan = rockmate.Rockmate(model, sample_inputs=inputs).plan
    for budget in (plan.store_all_peak_bytes, int(1.01 * plan.store_all_peak_bytes), "8GB", "100%", 1.0):
        assert rockmate.Rockmate(model, budget=budget, sample_inputs=inputs).plan.recomputed == []
    least = plan.min_budget_bytes
    assert rockmate.Rockmate(model, budget=least, sample_inputs=inputs).plan.peak_bytes <= least
    assert rockmate.Rockmate(model, budget=least + 1, sample_inputs=inputs).plan.peak_bytes <= least + 1
    with pytest.raises(rockmate.BudgetError, match=f"budget={least} or more") as caught:
        rockmate.Rockmate(model, budget=least - 1, sample_inputs=inputs)
    assert caught.value.min_budget_bytes == least


@pattern(
    "M2",
    "0, a negative number, text that is no budget, a share above 1",
    "refused when the model is wrapped, with what to write",
)
@pytest.mark.parametrize("budget", [0, -1, "abc", 1.5, "0", "-5%", "8 elephants", None, float("nan")])
def test_nonsense_budgets(budget: Any) -> None:
    with pytest.raises(rockmate.BudgetError, match=r"\[budget\]"):
        rockmate.Rockmate(nn.Linear(2, 2), budget=budget)


def classified(m: Any, x: Tensor) -> Tensor:
    return F.cross_entropy(m.output(torch.sin(m.a(x))), torch.arange(24))


SHAPES = {
    "parameters dominate": lambda: Case(
        nn.Sequential(nn.Linear(16, 512), nn.ReLU(), nn.Linear(512, 512), nn.Linear(512, 8)), (torch.randn(1, 16),)
    ),
    "a huge output layer with cross-entropy": lambda: Case(Fn(classified, **mlp(output=nn.Linear(64, 2000))), rows()),
    "one wide layer": lambda: Case(
        nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 4096), nn.Tanh(), nn.Linear(4096, 1)), rows()
    ),
    "a single op": lambda: Case(Fn(lambda m, x: m.w * x, w=nn.Parameter(torch.randn(16))), rows()),
    "the identity": lambda: Case(nn.Identity(), rows(requires_grad=True)),
    "one value that everything reads": lambda: Case(
        Fn(
            lambda m, x: sum(torch.sin(layer(x)) for layer in m.layers),
            layers=nn.ModuleList(nn.Linear(16, 64) for _ in range(6)),
        ),
        rows(),
    ),
}


@equal("M3", "{shape}")
@pytest.mark.parametrize("shape", SHAPES)
def test_odd_shapes(shape: str) -> Case:
    return SHAPES[shape]()


def derived(m: Any, x: Tensor) -> Tensor:
    for layer in m.layers:
        weight = (layer.weight.bfloat16().float() * 0.5).t().contiguous()
        x = torch.sin(x @ weight)
    return x


@equal("M4", "weights cast, scaled and transposed before use")
def test_derived_weights() -> Case:
    return Case(Fn(derived, layers=nn.ModuleList(nn.Linear(16, 16, bias=False) for _ in range(4))), rows())


@pattern("M4", "at the least budget, copies of the weights are not kept from the forward to the backward pass")
def test_derived_weights_are_not_kept() -> None:
    model = Fn(derived, layers=nn.ModuleList(nn.Linear(64, 64, bias=False) for _ in range(8)))
    inputs = (torch.randn(2, 64),)
    plan = rockmate.Rockmate(model, sample_inputs=inputs).plan
    least = rockmate.Rockmate(model, budget=plan.min_budget_bytes, sample_inputs=inputs).plan
    one_weight = 64 * 64 * 4
    assert plan.kept_bytes >= 7 * one_weight and least.kept_bytes <= 2 * one_weight


@pattern("M5", "100 steps with the garbage collector off, and forwards whose backward is never called: nothing stays")
def test_nothing_stays() -> None:
    model = Fn(
        lambda m, x: m.norm(m.b(F.dropout(torch.sin(m.a(x))))),
        a=nn.Linear(16, 64),
        b=nn.Linear(64, 16),
        norm=nn.BatchNorm1d(16),
    )
    wrapper = rockmate.Rockmate(model, budget="80%")
    (x,) = rows()
    weighted(wrapper(x)).backward()
    gc.collect()
    gc.disable()
    try:
        with rockmate.Meter(known=[*(p.grad for p in model.parameters()), *model.buffers()]) as meter:
            for _ in range(50):
                weighted(wrapper(x)).backward()
                wrapper(x)
        assert meter.current_bytes == 0
    finally:
        gc.enable()


def training_graph(blocks: int) -> str:
    """A chain of blocks of five ops each way, as JSON: each op reads the one before, the last of a block its input too."""
    values = [{"name": "x", "bytes": 4096, "kind": "input", "retention": "last_use", "producer": -1}]
    ops: list[dict[str, Any]] = []

    def op(name: str, inputs: list[int], forward: bool, last: bool = False) -> int:
        kind = "activation" if forward else "gradient"
        values.append(
            {"name": name, "bytes": 4096, "kind": kind, "retention": "step_end" if last else "last_use", "producer": len(ops)}
        )
        ops.append(
            {
                "name": name,
                "target": f"op{len(inputs)}",
                "signature": name.split("_")[0],
                "module": "",
                "pass": "forward" if forward else "backward",
                "inputs": inputs,
                "outputs": [len(values) - 1],
                "time_us": 10.0,
                "workspace_bytes": 0,
                "flops": 0.0,
                "moved_bytes": 0,
                "dtype": "float32",
                "is_random": False,
                "recomputable": True,
            }
        )
        return len(values) - 1

    saved: list[int] = []
    value = 0
    for block in range(blocks):
        start = value
        for i in range(5):
            saved.append(value)
            value = op(f"f{i}_{block}", [value, start] if i == 4 and start else [value], True)
    gradient = value
    for index in reversed(range(len(saved))):
        gradient = op(f"b{index % 5}_{index // 5}", list(dict.fromkeys([gradient, saved[index]])), False, last=index == 0)
    graph = {"format": "rockmate-graph", "version": 1, "name": "chain", "device": "cpu", "rng_state_bytes": 0}
    return json.dumps({**graph, "values": values, "ops": ops})


@pattern("M6", "planning 1 k, 5 k and 20 k ops: every plan is verified, in less than 2 GiB")
@pytest.mark.parametrize("ops", [1000, pytest.param(5000, marks=pytest.mark.long), pytest.param(20000, marks=pytest.mark.long)])
def test_planning_large_graphs(ops: int) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    options = _planner.PlannerOptions()
    options.threads = 1
    options.cache_dir = ""
    curve = _planner.plan_curve(_planner.TrainingGraph.from_json(training_graph(ops // 10)), options, None)
    assert curve.min_budget_bytes < 0.5 * curve.store_all_peak_bytes
    assert all(a.peak_bytes < b.peak_bytes and a.overhead >= b.overhead for a, b in zip(curve.plans, curve.plans[1:]))  # noqa: B905
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < 2 << 30
