"""Step time against plain PyTorch, paired: all variants take turns in one run."""

from __future__ import annotations

from collections.abc import Callable

import torch
from report import Part, Table, Target
from running import copies, interleaved, ratio_figures, step_of
from workloads import MODELS, many_tiny_ops

import rockmate

SHARES = (1.0, 0.5, 0.25)
COLUMNS = [
    ("variant", "variant", "{}"),
    ("peak_bytes", "predicted peak", "bytes"),
    ("overhead", "predicted overhead", "{:.1%}"),
    ("step_ms", "step, ms", "{:.2f}"),
    ("ratio", "against plain", "{:.3f}"),
    ("ratio_low", "lower quartile", "{:.3f}"),
    ("ratio_high", "upper quartile", "{:.3f}"),
    ("rounds", "rounds", "{:d}"),
]


def speed(name: str, seconds: float, progress: Callable[[str], None]) -> Part:
    """Steps at 100, 50 and 25 % and at the least budget; budgets that can't be met are left out."""
    (base, *others), inputs = copies(MODELS[name], len(SHARES) + 2)
    estimate = rockmate.estimate(base, inputs)
    budgets = {f"{share:.0%}": int(share * estimate.store_all_peak_bytes) for share in SHARES}
    budgets = {label: budget for label, budget in budgets.items() if budget >= estimate.min_budget_bytes}
    budgets["least"] = estimate.min_budget_bytes
    steps = {"plain": step_of(base, inputs)}
    rows: list[dict[str, object]] = [{"variant": "plain"}]
    for (label, budget), model in zip(budgets.items(), others, strict=False):
        progress(f"compile at {label}")
        wrapper = rockmate.Rockmate(model, budget, sample_inputs=inputs)
        assert wrapper.plan is not None
        steps[label] = step_of(wrapper, inputs)
        rows.append({"variant": label, "peak_bytes": wrapper.plan.peak_bytes, "overhead": wrapper.plan.overhead})
    progress("steps")
    times = interleaved(steps, seconds, rare=["least"])
    for row in rows:
        row.update(ratio_figures(times, str(row["variant"]), "plain"))
    at_100 = next(row for row in rows if row["variant"] == "100%")
    target = Target(
        f"{name}: step at 100 % against plain", "≤ 1.02", f"{at_100['ratio']:.3f}", bool(float(str(at_100["ratio"])) <= 1.02)
    )
    return Part([Table(f"{name}: step time", COLUMNS, rows)], [target])


def dispatch_bound(seconds: float, progress: Callable[[str], None]) -> Part:
    """A model whose ops are so small that only calling them takes time, at 100 %, on one thread."""
    torch.set_num_threads(1)
    (base, other), inputs = copies(many_tiny_ops, 2)
    progress("compile")
    wrapper = rockmate.Rockmate(other, "100%", sample_inputs=inputs)
    assert wrapper.plan is not None
    rows: list[dict[str, object]] = [{"variant": "plain"}, {"variant": "100%"}]
    rows[1].update(peak_bytes=wrapper.plan.peak_bytes, overhead=wrapper.plan.overhead)
    progress("steps")
    times = interleaved({"plain": step_of(base, inputs), "100%": step_of(wrapper, inputs)}, seconds, 50, 2000)
    for row in rows:
        row.update(ratio_figures(times, str(row["variant"]), "plain"))
    ratio = float(str(rows[1]["ratio"]))
    table = Table("A dispatch-bound model (60 layers on 64 numbers, one thread): step time", COLUMNS, rows)
    table.notes.append(f"{len(wrapper.plan.graph.ops)} ops in a step.")
    return Part([table], [Target("dispatch-bound model at 100 % against plain", "< 1", f"{ratio:.3f}", ratio < 1)])
