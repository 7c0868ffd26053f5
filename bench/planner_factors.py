"""What the sweep says of each model: how far memory goes down for how much time."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence

from planner_runs import Job, Outcome, Runner
from planner_sweep import AUTO, AUTO_THREADS, time_limit_for, within
from report import Part, Table, Target

FACTOR_OVERHEADS = (0.05, 0.10, 0.20)
AVERAGES = {0.5: 0.07, 0.25: 0.18}  # share of the memory: FastSA's average overhead on 23 graphs


def factors(outcomes: Sequence[Outcome], models: Sequence[str]) -> Part:
    """The store-all peak over the least peak that `auto` reaches within an overhead."""
    rows = []
    runs = Counter(o.job.instance for o in outcomes if o.job.planner == AUTO)
    for model in models:
        if runs[model] < max(runs.values(), default=0):
            continue  # left out in part: the run was broken off
        its = [o for o in outcomes if o.job.instance == model and o.job.planner == AUTO and o.overhead is not None]
        if not its:
            continue
        row: dict[str, object] = {"model": model, "plain": its[0].store_all_peak_bytes}
        for limit in FACTOR_OVERHEADS:
            peaks = [o.peak_bytes for o in its if o.peak_bytes is not None and o.overhead is not None and o.overhead <= limit]
            row[f"at_{limit}"] = its[0].store_all_peak_bytes / min(peaks) if peaks else None
        least = min(o.peak_bytes for o in its if o.peak_bytes is not None)
        row["least"] = its[0].store_all_peak_bytes / least
        bound = max(o.min_budget_bound_bytes or 0 for o in its)
        row["most"] = its[0].store_all_peak_bytes / bound if bound else None
        rows.append(row)
    columns = [("model", "model", "{}"), ("plain", "store-all peak", "bytes")]
    columns += [(f"at_{limit}", f"within {limit:.0%}", "{:.2f} x") for limit in FACTOR_OVERHEADS]
    columns += [("least", "at the least budget", "{:.2f} x"), ("most", "no schedule beyond", "{:.2f} x")]
    part = Part([Table("Activation memory: how many times less, for how much more time", columns, rows)])
    possible = [row for row in rows if row["most"] is None or float(str(row["most"])) >= 2]
    if rows:
        reached = sum(row["at_0.2"] is not None and float(str(row["at_0.2"])) >= 2 for row in possible)
        shown = f"{reached} of {len(possible)}"
        rest = ", ".join(str(row["model"]) for row in rows if row not in possible)
        part.targets.append(
            Target(
                "activation memory down by 2 to 5 x within 20 %",
                "every model that some schedule halves",
                shown + (f" (none halves {rest})" if rest else ""),
                reached == len(possible),
            )
        )
    return part


def average_jobs(runner: Runner, models: Sequence[str], time_limit_s: float) -> list[Job]:
    """The shares of the averages themselves: those of the sweep lie a little above and below."""
    return [
        Job(model, AUTO, share, time_limit_for(time_limit_s, runner.num_ops(model)), AUTO_THREADS)
        for model in models
        for share in AVERAGES
    ]


def average_cost(outcomes: Sequence[Outcome], models: Sequence[str]) -> list[Target]:
    """FastSA's averages on 23 graphs of vision and language models: 7 % at half the memory, 18 % at a quarter."""
    targets = []
    for share, figure in AVERAGES.items():
        found, swept = [], 0
        for model in models:
            its = [o for o in outcomes if o.job.instance == model and o.job.planner == AUTO]
            if its:
                swept += 1
                best = within(its, int(share * its[0].store_all_peak_bytes))
                if best is not None and best.overhead is not None:
                    found.append(best.overhead)
        if found:
            mean = statistics.fmean(found)
            shown = f"{mean:.1%} on the {len(found)} of {swept} models that get there"
            targets.append(Target(f"average over models at {share:.0%}", f"≤ {figure:.0%}", shown, mean <= figure))
    return targets
