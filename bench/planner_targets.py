"""What the planner has to reach beside the sweep: the figures of Rockmate's paper and of a rough prototype on GPT-2 large, what
more options for each block bring, ResNet-101 against Rotor."""

from __future__ import annotations

from collections.abc import Sequence

from planner_runs import Job, Runner
from planner_sections import LARGE, ROTOR, Outcomes, Section, bound_at, overhead_at, percent
from planner_sweep import AUTO, NO_BUDGET
from report import Part, Table, Target

# Half the memory, the least budget: the figures of Rockmate's paper for GPT-2 large.

PAPERS_ROTOR = "rotor-layers"  # the paper gives Rotor whole layers as blocks
PAPER_HALF, PAPER_ROTOR_HALF, PAPER_FLOOR = 0.05, 0.10, 0.61


def _paper_jobs(runner: Runner, planners: Sequence[str], limit_s: float) -> list[Job]:
    wanted = [p for p in (AUTO, *ROTOR) if p in planners]
    graphs = [g for g in (LARGE, "gpt2_large_trunk") if g in runner.graphs]
    return [Job(graph, planner, share, 5 * limit_s) for graph in graphs for planner in wanted for share in (0.5, NO_BUDGET)]


def _paper_report(outcomes: Outcomes) -> Part:
    part = Part()
    for graph in dict.fromkeys(job.instance for job in outcomes):
        mine = overhead_at(outcomes, graph, [AUTO], 0.5)
        its = [overhead_at(outcomes, graph, [planner], 0.5) for planner in ROTOR]
        rotor = min((o for o in its if o is not None), default=None)
        floors = {
            job.planner: o.min_budget_bytes for job, o in outcomes.items() if job.instance == graph and o.min_budget_bytes
        }
        part.targets.append(
            Target(f"{graph}, half of the activation memory", "≤ 5 %", percent(mine), mine is not None and mine <= PAPER_HALF)
        )
        part.targets.append(
            Target(
                f"{graph}, half: Rotor needs more",
                "> 10 %",
                ", ".join(f"{p} {percent(o)}" for p, o in zip(ROTOR, its, strict=True)),
                rotor is not None and rotor > PAPER_ROTOR_HALF,
            )
        )
        ratios = {p: floors[AUTO] / floors[p] for p in ROTOR if p in floors and AUTO in floors}
        shown = ", ".join(f"{ratio:.2f} of {p}'s {floors[p] / 2**20:,.0f} MiB" for p, ratio in ratios.items()) or "unknown"
        met = ratios.get(PAPERS_ROTOR, 1.0) <= PAPER_FLOOR
        bound = max(o.min_budget_bound_bytes or 0 for job, o in outcomes.items() if job.instance == graph)
        if PAPERS_ROTOR in floors and bound > PAPER_FLOOR * floors[PAPERS_ROTOR]:
            shown += f"; no schedule of this graph is below {bound / floors[PAPERS_ROTOR]:.3f} of it"
        part.targets.append(Target(f"{graph}, least budget over that of {PAPERS_ROTOR}", "≤ 0.61", shown, met))
    return part


# A rough prototype: better of two block sizes, attention written out, T 512, batch 4, 12 x 12 options.

PROTOTYPE = {0.8: 0.006, 0.6: 0.014, 0.5: 0.026, 0.4: 0.043, 0.3: 0.081, 0.2: 0.160, 0.1: 0.251, 0.05: 0.327}


def _prototype_jobs(runner: Runner, planners: Sequence[str], limit_s: float) -> list[Job]:
    graphs = [g for g in ("gpt2_large_trunk", LARGE) if g in runner.graphs]
    wanted = [p for p in (AUTO, *ROTOR) if p in planners]
    return [Job(graph, planner, share, 5 * limit_s) for graph in graphs for planner in wanted for share in PROTOTYPE]


def _prototype_report(outcomes: Outcomes) -> Part:
    """Held against it on the graph without head: with it, four values of vocabulary size keep every plan above 5 %. The
    prototype's own graph is lost; where its figure is below the lower bound, no schedule of ours can reach it."""
    rows = [
        {
            "share": share,
            "prototype": figure,
            **{
                f"{graph}_{p}": overhead_at(outcomes, graph, [p], share)
                for graph in (LARGE, "gpt2_large_trunk")
                for p in (AUTO, *ROTOR)
            },
        }
        for share, figure in PROTOTYPE.items()
    ]
    for row in rows:
        row["bound"] = bound_at(outcomes, "gpt2_large_trunk", row["share"] or 0.0)
    columns = [
        ("share", "budget", "{:.0%}"),
        ("prototype", "prototype", "{:.1%}"),
        ("bound", "lower bound, without head", "{:.2%}"),
    ]
    for graph, title in (("gpt2_large_trunk", "without head"), (LARGE, "with head")):
        columns += [(f"{graph}_{planner}", f"{planner}, {title}", "{:.2%}") for planner in (AUTO, *ROTOR)]
    part = Part([Table("GPT-2 large against the prototype (overhead)", columns, rows)])
    for share, figure in PROTOTYPE.items():
        mine = overhead_at(outcomes, "gpt2_large_trunk", [AUTO], share)
        bound = bound_at(outcomes, "gpt2_large_trunk", share)
        shown = percent(mine) + ("" if bound < figure else f"; no schedule of this graph is below {bound:.2%}")
        part.targets.append(Target(f"GPT-2 large at {share:.0%}", f"< {figure:.1%}", shown, mine is not None and mine < figure))
    return part


# What more options per block bring, and ResNet-101 against Rotor.

LEVELS = (3, 10, 30)
LEVEL_GRAPHS = ("gpt2_medium", "resnet101")
LEVEL_SHARES = (0.8, 0.6, 0.4, 0.3, 0.2)


def _levels_jobs(runner: Runner, planners: Sequence[str], limit_s: float) -> list[Job]:
    jobs = []
    for graph in (g for g in LEVEL_GRAPHS if g in runner.graphs):
        for level in reversed(LEVELS):
            arguments = ("--save-levels", str(level), "--peak-levels", str(level))
            jobs += [Job(graph, "rockmate-chain", share, 60, arguments=arguments) for share in LEVEL_SHARES]
        jobs += [Job(graph, "rockmate", share, 60) for share in LEVEL_SHARES]
    jobs += [
        Job("resnet101", p, s, 2 * limit_s)
        for p in (AUTO, *ROTOR)
        if p in planners and "resnet101" in runner.graphs
        for s in LEVEL_SHARES
    ]
    return jobs


def _levels_report(outcomes: Outcomes) -> Part:
    part = Part()
    for graph in LEVEL_GRAPHS:
        rows = []
        for share in LEVEL_SHARES:
            row: dict[str, float | None] = {"share": share}
            for level in LEVELS:
                its = (
                    o
                    for job, o in outcomes.items()
                    if job.instance == graph and job.share == share and job.arguments[1:2] == (str(level),)
                )
                row[f"l{level}"] = next((o.overhead for o in its), None)
            row["rockmate"] = overhead_at(outcomes, graph, ["rockmate"], share)
            row["bound"] = bound_at(outcomes, graph, share)
            rows.append(row)
        if all(row["l3"] is None and row["l30"] is None for row in rows):
            continue
        columns = [
            ("share", "budget", "{:.0%}"),
            *((f"l{level}", f"({level}, {level}) options", "{:.2%}") for level in LEVELS),
            ("rockmate", "planner rockmate", "{:.2%}"),
            ("bound", "no schedule below", "{:.2%}"),
        ]
        title = f"{graph}: overhead of the chain alone (planner rockmate-chain) with more options for each block"
        part.tables.append(Table(title, columns, rows))
        gains = [row["l3"] - row["l30"] for row in rows if row["l3"] is not None and row["l30"] is not None]
        won = sum(row["l3"] is None and row["l30"] is not None for row in rows)
        gained = bool(gains) and max(gains) > 0 and min(gains) > -1e-4
        shown = f"{min(gains):.2%} to {max(gains):.2%} of the step" if gains else "-"
        part.targets.append(
            Target(
                f"{graph}: (30, 30) options gain on (3, 3)",
                "> 0, never worse",
                shown + (f", {won} budgets more" if won else ""),
                gained or won > 0,
            )
        )
    rows = [{"share": s, **{p: overhead_at(outcomes, "resnet101", [p], s) for p in (AUTO, *ROTOR)}} for s in LEVEL_SHARES]
    compared = [row for row in rows if any(row[p] is not None for p in ROTOR)]
    if compared:
        never = sum(
            row[AUTO] is not None and row[AUTO] <= min(row[p] for p in ROTOR if row[p] is not None) + 1e-9 for row in compared
        )
        part.tables.append(
            Table(
                "resnet101 against Rotor (overhead)",
                [("share", "budget", "{:.0%}"), *((p, p, "{:.2%}") for p in (AUTO, *ROTOR))],
                rows,
            )
        )
        part.targets.append(
            Target(
                "ResNet-101: never worse than Rotor", "at all budgets", f"{never} of {len(compared)}", never == len(compared)
            )
        )
    return part


SECTIONS = [
    Section("paper", _paper_jobs, _paper_report),
    Section("prototype", _prototype_jobs, _prototype_report),
    Section("levels", _levels_jobs, _levels_report),
]
