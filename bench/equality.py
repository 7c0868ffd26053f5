"""Does a model train to the bit as it does plainly, inside each budget, at the predicted peak?"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from report import Part, Table, Target
from running import Run, first_difference, train
from workloads import MODELS

import rockmate

SHARES = (1.0, 0.75, 0.5, 0.25)
COLUMNS = [
    ("label", "budget", "{}"),
    ("budget_bytes", "bytes", "bytes"),
    ("predicted_bytes", "predicted peak", "bytes"),
    ("measured_bytes", "measured peak", "bytes"),
    ("off_bytes", "off by, bytes", "{:d}"),
    ("overhead", "predicted overhead", "{:.1%}"),
    ("recomputed", "ops recomputed", "{:d}"),
    ("equal", "equal to the bit", "yes/no"),
]


def equality(name: str, budgets: int, progress: Callable[[str], None]) -> Part:
    """Three steps at 100, 75, 50 and 25 % and at ``budgets`` budgets from the least to 100 %, each against plain steps."""
    torch._dynamo.config.cache_size_limit = 1024
    make = MODELS[name]
    plain = train(make)
    torch.manual_seed(0)
    model, inputs = make()
    progress("estimate")
    estimate = rockmate.estimate(model, inputs)
    del model
    least, whole = estimate.min_budget_bytes, estimate.store_all_peak_bytes
    asked = {f"{share:.0%}": int(share * whole) for share in SHARES if int(share * whole) >= least}
    steps = max(budgets - 1, 1)
    for index in range(budgets):
        budget = least + (whole - least) * index // steps
        if budget not in asked.values():
            asked["least" if index == 0 else f"{budget / whole:.1%}"] = budget
    rows: list[dict[str, Any]] = []
    for count, (label, budget) in enumerate(sorted(asked.items(), key=lambda item: item[1]), start=1):
        progress(f"budget {count} of {len(asked)}: {label}")
        rows.append(_row(label, budget, plain, train(make, lambda m, budget=budget: rockmate.Rockmate(m, budget))))
        torch._dynamo.reset()
    unmet = [f"{share:.0%}" for share in SHARES if int(share * whole) < least]
    table = Table(f"{name}: equality and peaks over three steps", COLUMNS, rows[::-1])
    table.notes.append(f"Plain peak, measured: {plain.peak_bytes / 2**20:.2f} MiB.")
    table.notes.append(f"Least budget: {least / whole:.1%} of the peak without recomputation.")
    if unmet:
        table.notes.append(f"Refused, below the least: {', '.join(unmet)}.")
    differences = [f"{row['label']}: {row['difference']}" for row in rows if row["difference"]]
    table.notes += [f"Differs at {difference}." for difference in differences]
    return Part([table], _targets(name, rows))


def _row(label: str, budget: int, plain: Run, ours: Run) -> dict[str, Any]:
    plan = ours.model.plan
    difference = first_difference(plain, ours)
    return {
        "label": label,
        "budget_bytes": budget,
        "predicted_bytes": plan.peak_bytes,
        "measured_bytes": ours.peak_bytes,
        "off_bytes": ours.peak_bytes - plan.peak_bytes,
        "overhead": plan.overhead,
        "recomputed": len(plan.recomputed),
        "equal": difference is None,
        "difference": difference,
        "plain_bytes": plain.peak_bytes,
    }


def _targets(name: str, rows: list[dict[str, Any]]) -> list[Target]:
    total = len(rows)

    def all_of(what: str, target: str, good: list[bool]) -> Target:
        return Target(f"{name}: {what}", target, f"{sum(good)} of {len(good)}", all(good))

    return [
        all_of("equal to the bit with plain", f"at {total} budgets", [row["equal"] for row in rows]),
        all_of(
            "measured peak within the budget",
            f"at {total} budgets",
            [row["measured_bytes"] <= row["budget_bytes"] for row in rows],
        ),
        all_of("predicted peak is the measured one", f"at {total} budgets", [row["off_bytes"] == 0 for row in rows]),
        all_of(
            "a lower budget, no higher peak",
            "for all neighbours",
            [low["measured_bytes"] <= high["measured_bytes"] for low, high in itertools.pairwise(rows)],
        ),
        all_of("nothing recomputed at 100 %", "0 ops", [row["recomputed"] == 0 for row in rows if row["label"] == "100%"]),
    ]
