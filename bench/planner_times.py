"""How long planning takes: against depth, for GPT-2 large, for 20,000 ops. Each run alone, on all cores or on one."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from planner_runs import Job, Runner
from planner_sections import LARGE, UNTIMED, Outcomes, Section, percent
from planner_sweep import AUTO
from report import Part, Table, Target

DEPTHS = (2, 4, 6, 8, 10)
DEPTH_SHARE = 0.8
DEPTH_REPEATS = 3
CHECKMATE_LIMIT_S = 20.0
TIMED = (AUTO, "rockmate-chain", "rockmate")


def _depth_jobs(runner: Runner, planners: Sequence[str], limit_s: float) -> list[Job]:
    graphs = [f"gpt2_{depth}_layers" for depth in DEPTHS if f"gpt2_{depth}_layers" in runner.graphs]
    jobs = [
        Job(graph, planner, DEPTH_SHARE + 0.0001 * repeat, UNTIMED)  # budgets that differ by nothing: each is a run of its own
        for repeat in range(DEPTH_REPEATS)
        for graph in graphs
        for planner in TIMED
    ]
    if "checkmate" in planners:
        jobs += [Job(graph, "checkmate", DEPTH_SHARE, CHECKMATE_LIMIT_S) for graph in graphs[:3]]
    return jobs


def _depth_report(outcomes: Outcomes) -> Part:
    rows = []
    for depth in DEPTHS:
        row: dict[str, object] = {"depth": depth}
        for planner in (*TIMED, "checkmate"):
            its = [o for job, o in outcomes.items() if job.instance == f"gpt2_{depth}_layers" and job.planner == planner]
            if its:
                row[f"{planner}_s"] = statistics.median(o.plan_seconds for o in its)
                row[f"{planner}_overhead"] = min((o.overhead for o in its if o.overhead is not None), default=None)
                row[f"{planner}_status"] = its[0].status.replace("_", " ")
        rows.append(row)
    columns = [("depth", "layers", "{}")]
    for planner in (*TIMED, "checkmate"):
        columns += [(f"{planner}_s", f"{planner}, s", "{:.2f}"), (f"{planner}_overhead", "overhead", "{:.2%}")]
    columns.append(("checkmate_status", "checkmate", "{}"))
    part = Part([Table(f"GPT-2 by depth at {DEPTH_SHARE:.0%}: median plan seconds of {DEPTH_REPEATS}", columns, rows)])
    for planner in TIMED:
        first, last = rows[0].get(f"{planner}_s"), rows[-1].get(f"{planner}_s")
        if isinstance(first, float) and isinstance(last, float) and first > 0:
            shown = f"{last / first:.2f} ({first:.2f} s, {last:.2f} s)"
            part.targets.append(Target(f"plan time of {planner}, 10 layers over 2 layers", "≤ 1.3", shown, last / first <= 1.3))
    return part


DEEP = ("gpt2_deep", "checkmate_deep")


def _scale_jobs(runner: Runner, planners: Sequence[str], limit_s: float) -> list[Job]:
    jobs = []
    if LARGE in runner.graphs:
        fine = ("--save-levels", "30", "--peak-levels", "30")
        jobs += [Job(LARGE, AUTO, 0.5, UNTIMED, 2), Job(LARGE, AUTO, 0.5, UNTIMED, 2, fine)]
    return jobs + [Job(graph, AUTO, 0.5, UNTIMED, 2) for graph in DEEP if graph in runner.graphs]


def _scale_report(outcomes: Outcomes) -> Part:
    part = Part()
    for job, o in outcomes.items():
        shown = f"{o.wall_s:.1f} s ({o.cpu_s:.1f} s of CPU), overhead {percent(o.overhead)}"
        if job.instance in DEEP:
            size = f"{o.resident_bytes / 2**30:.2f} GiB"
            what = f"{job.instance}, 20,000 ops or more, 50 %"
            part.targets.append(Target(f"{what}: time", "≤ 60 s", shown, o.found and o.wall_s <= 60))
            part.targets.append(Target(f"{what}: memory", "≤ 2 GiB", size, o.resident_bytes <= 2 << 30))
        else:
            limit, quality = (60, "(30, 30)") if job.arguments else (10, "default")
            part.targets.append(
                Target(f"GPT-2 large, 50 %, {quality} options", f"≤ {limit} s", shown, o.found and o.wall_s <= limit)
            )
    return part


SECTIONS = [
    Section("depth", _depth_jobs, _depth_report, alone=True),
    Section("scale", _scale_jobs, _scale_report, alone=True),
]
