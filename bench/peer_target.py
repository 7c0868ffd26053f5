"""What Rockmate has to reach against PyTorch's own means: GPT of 8 layers at the peak of torch.utils.checkpoint per layer."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from peer_compile import compiled
from report import Part, Table, Target
from running import first_difference, interleaved, largest_gradient_error, ratio_figures, step_of, train
from torch import nn
from workloads import gpt_of_8_layers

import rockmate

MEMORY_BUDGETS = (1.0, 0.5, 0.0)
COLUMNS = [
    ("variant", "variant", "{}"),
    ("peak_bytes", "measured peak", "bytes"),
    ("share", "of the plain peak", "{:.2f}"),
    ("recomputed_ms", "recomputed op time, ms", "{:.2f}"),
    ("overhead", "recomputed, of the step's op time", "{:.1%}"),
    ("step_ms", "step, ms", "{:.2f}"),
    ("ratio", "against plain", "{:.3f}"),
    ("ratio_low", "lower quartile", "{:.3f}"),
    ("ratio_high", "upper quartile", "{:.3f}"),
    ("equal", "equal to the bit", "yes/no"),
    ("gradient_error", "largest gradient error", "{:.1e}"),
]


def checkpoint_per_layer(model: nn.Module) -> nn.Module:
    """Each transformer block under torch.utils.checkpoint, as transformers itself does it."""
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model


def target(seconds: float, progress: Callable[[str], None]) -> Part:
    """Equality and peak of each variant over three steps, then all of them timed in turns."""
    progress("plain and checkpoint per layer")
    plain = train(gpt_of_8_layers)
    checkpointed = train(gpt_of_8_layers, checkpoint_per_layer)
    runs = {"plain": plain, "checkpoint per layer": checkpointed}
    budget, refusal = checkpointed.peak_bytes, None
    progress(f"Rockmate at the checkpoint's peak, {budget} bytes")
    try:
        runs["Rockmate at that peak"] = train(gpt_of_8_layers, lambda model: rockmate.Rockmate(model, budget))
    except rockmate.BudgetError as error:
        refusal = str(error)
    for share in MEMORY_BUDGETS:
        label = f"PyTorch's memory budget {share}"
        progress(label)
        runs[label] = train(gpt_of_8_layers, compiled(share, "aot_eager"))
    rows = [
        {
            "variant": label,
            "peak_bytes": run.peak_bytes,
            "share": run.peak_bytes / plain.peak_bytes,
            "equal": first_difference(plain, run) is None,
            "gradient_error": largest_gradient_error(plain, run),
        }
        for label, run in runs.items()
    ]
    by_label = {str(row["variant"]): row for row in rows}
    plan = runs["Rockmate at that peak"].model.plan if refusal is None else None
    if plan is not None:
        recomputed_us, step_us = recomputed_time(plan)
        by_label["Rockmate at that peak"].update(recomputed_ms=recomputed_us / 1e3, overhead=recomputed_us / step_us)
        layers_us = layer_recomputation_time(plan)
        by_label["checkpoint per layer"].update(recomputed_ms=layers_us / 1e3, overhead=layers_us / step_us)
    _, inputs = gpt_of_8_layers()
    steps = {label: step_of(run.model, inputs) for label, run in runs.items()}
    progress("steps")
    times = interleaved(steps, seconds)
    for label, row in by_label.items():
        row.update(ratio_figures(times, label, "plain"))
    table = Table("Against PyTorch's own means: GPT of 8 layers, width 256, 256 tokens, batch 4", COLUMNS, rows)
    table.notes.append(
        "Recomputed time is the sum of the measured times of the ops that are computed again, the same times in both rows. "
        "Checkpointing computes each block again up to the last tensor that its backward pass needs."
    )
    if refusal is not None:
        table.notes.append(f"Rockmate refuses that peak: {refusal}")
    wrong = [str(row["variant"]) for row in rows if not row["equal"]]
    if wrong:
        table.notes.append(f"Not the results of plain training (random ops drawn anew when recomputed): {', '.join(wrong)}.")
    return Part([table], _targets(by_label))


def _targets(rows: dict[str, dict[str, Any]]) -> list[Target]:
    theirs, ours = rows["checkpoint per layer"], rows.get("Rockmate at that peak")
    if ours is None:
        return [Target("budget of the checkpoint's peak", "met", "refused", False)]
    return [
        Target(
            "recomputed time at the peak of checkpoint per layer",
            f"< {theirs['overhead']:.1%}",
            f"{ours['overhead']:.1%}",
            ours["overhead"] < theirs["overhead"],
        ),
        Target(
            "step time at the peak of checkpoint per layer",
            f"< {theirs['ratio']:.3f} of plain",
            f"{ours['ratio']:.3f}",
            ours["ratio"] < theirs["ratio"],
        ),
        Target(
            "measured peak at the peak of checkpoint per layer",
            f"≤ {theirs['peak_bytes']} bytes",
            f"{ours['peak_bytes']} bytes",
            ours["peak_bytes"] <= theirs["peak_bytes"],
        ),
    ]


def recomputed_time(plan: rockmate.Plan) -> tuple[float, float]:
    """Time of the computes beyond each op's first, and of all first ones, in microseconds."""
    ops = plan.graph.ops
    seen: set[int] = set()
    again = 0.0
    for kind, op in plan.schedule.actions:
        if kind == "compute" and op in seen:
            again += ops[op].time_us
        elif kind == "compute":
            seen.add(op)
    return again, sum(op.time_us for op in ops)


def layer_recomputation_time(plan: rockmate.Plan) -> float:
    """Time in microseconds of what checkpointing per layer computes again: each block up to the last op whose output its
    backward pass needs (torch.utils.checkpoint stops early there)."""
    ops = plan.graph.ops
    needed = {value for op in ops if not op.is_forward for value in op.inputs}
    by_layer: dict[str, list[Any]] = {}
    for op in ops:
        layer = re.match(r"transformer\.h\.\d+", op.module)
        if layer is not None and op.is_forward:
            by_layer.setdefault(layer.group(), []).append(op)
    total = 0.0
    for layer_ops in by_layer.values():
        last = max(index for index, op in enumerate(layer_ops) if needed.intersection(op.outputs))
        total += sum(op.time_us for op in layer_ops[: last + 1])
    return total
