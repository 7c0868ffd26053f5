"""What the planner has to reach beside the sweep: the papers' figures, a rough prototype's, times and sizes. One section each.

A section names its jobs and, from what came of them, makes its tables and targets. Sections that time something run alone.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from planner_runs import Job, Outcome, Runner
from planner_sweep import AUTO, NO_BUDGET, within
from published_results import SAME_KIND, Published, published_for
from report import Part, Table, Target

Outcomes = Mapping[Job, Outcome]
ROTOR = ("rotor", "rotor-layers")
UNTIMED = None  # the planner ends when it thinks that it is done


@dataclass(frozen=True)
class Section:
    name: str
    jobs: Callable[[Runner, Sequence[str], float], list[Job]]
    report: Callable[[Outcomes], Part]
    alone: bool = False  # one run at a time, on all cores


def percent(value: float | None) -> str:
    return "no plan" if value is None else f"{value:.2%}"


def _overhead(outcomes: Outcomes, instance: str, planners: Sequence[str], share: float) -> float | None:
    """The least of these planners at this budget, also by a plan that was made for a smaller one."""
    its = [o for job, o in outcomes.items() if job.instance == instance and job.planner in planners]
    budget = next((o.budget_bytes for o in its if o.job.share == share), None)
    best = within(its, budget) if budget is not None else None
    return best.overhead if best is not None else None


def _bound(outcomes: Outcomes, instance: str, share: float) -> float:
    """The highest of the lower bounds that were proved at this budget."""
    its = (o.lower_bound for job, o in outcomes.items() if job.instance == instance and job.share == share)
    return max((bound for bound in its if bound is not None), default=0.0)


# Half the memory, the least budget: the figures of Rockmate's paper for GPT-2 large.

LARGE = "gpt2_large"
PAPER_HALF, PAPER_ROTOR_HALF, PAPER_FLOOR = 0.05, 0.10, 0.61


def _paper_jobs(runner: Runner, planners: Sequence[str], limit_s: float) -> list[Job]:
    wanted = [p for p in (AUTO, *ROTOR) if p in planners]
    graphs = [g for g in (LARGE, "gpt2_large_trunk") if g in runner.graphs]
    return [Job(graph, planner, share, 5 * limit_s) for graph in graphs for planner in wanted for share in (0.5, NO_BUDGET)]


def _paper_report(outcomes: Outcomes) -> Part:
    part = Part()
    for graph in dict.fromkeys(job.instance for job in outcomes):
        mine = _overhead(outcomes, graph, [AUTO], 0.5)
        its = [_overhead(outcomes, graph, [planner], 0.5) for planner in ROTOR]
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
        theirs = min((floors[p] for p in ROTOR if p in floors), default=None)
        ours = floors.get(AUTO)
        ratio = ours / theirs if ours and theirs else None
        reached = "unknown" if ratio is None else f"{ratio:.2f} ({ours / 2**20:,.0f} of {theirs / 2**20:,.0f} MiB)"  # type: ignore[operator]
        part.targets.append(
            Target(f"{graph}, least budget over Rotor's", "≤ 0.61", reached, ratio is not None and ratio <= PAPER_FLOOR)
        )
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
                f"{graph}_{p}": _overhead(outcomes, graph, [p], share)
                for graph in (LARGE, "gpt2_large_trunk")
                for p in (AUTO, *ROTOR)
            },
        }
        for share, figure in PROTOTYPE.items()
    ]
    for row in rows:
        row["bound"] = _bound(outcomes, "gpt2_large_trunk", row["share"] or 0.0)
    columns = [
        ("share", "budget", "{:.0%}"),
        ("prototype", "prototype", "{:.1%}"),
        ("bound", "lower bound, without head", "{:.2%}"),
    ]
    for graph, title in (("gpt2_large_trunk", "without head"), (LARGE, "with head")):
        columns += [(f"{graph}_{planner}", f"{planner}, {title}", "{:.2%}") for planner in (AUTO, *ROTOR)]
    part = Part([Table("GPT-2 large against the prototype (overhead)", columns, rows)])
    for share, figure in PROTOTYPE.items():
        mine = _overhead(outcomes, "gpt2_large_trunk", [AUTO], share)
        bound = _bound(outcomes, "gpt2_large_trunk", share)
        shown = percent(mine) + ("" if bound < figure else f"; no schedule of this graph is below {bound:.2%}")
        part.targets.append(Target(f"GPT-2 large at {share:.0%}", f"< {figure:.1%}", shown, mine is not None and mine < figure))
    return part


# What more options per block bring, and ResNet-101 against Rotor.

LEVELS = (3, 10, 30)
LEVEL_GRAPHS = ("gpt2_medium", "resnet101")
LEVEL_SHARES = (0.8, 0.6, 0.4, 0.3)


def _levels_jobs(runner: Runner, planners: Sequence[str], limit_s: float) -> list[Job]:
    jobs = []
    for graph in (g for g in LEVEL_GRAPHS if g in runner.graphs):
        for level in reversed(LEVELS):
            arguments = ("--save-levels", str(level), "--peak-levels", str(level))
            jobs += [Job(graph, "rockmate", share, 60, arguments=arguments) for share in LEVEL_SHARES]
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
            rows.append(row)
        if all(row["l3"] is None and row["l30"] is None for row in rows):
            continue
        columns = [("share", "budget", "{:.0%}"), *((f"l{level}", f"({level}, {level}) options", "{:.2%}") for level in LEVELS)]
        part.tables.append(Table(f"{graph}: overhead with more options for each block (planner rockmate)", columns, rows))
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
    rows = [{"share": s, **{p: _overhead(outcomes, "resnet101", [p], s) for p in (AUTO, *ROTOR)}} for s in LEVEL_SHARES]
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


# Plan time against depth; GPT-2 large; 20,000 ops.

DEPTHS = (2, 4, 6, 8, 10)
DEPTH_SHARE = 0.8
DEPTH_REPEATS = 3
CHECKMATE_LIMIT_S = 20.0


def _depth_jobs(runner: Runner, planners: Sequence[str], limit_s: float) -> list[Job]:
    graphs = [f"gpt2_{depth}_layers" for depth in DEPTHS if f"gpt2_{depth}_layers" in runner.graphs]
    jobs = [
        Job(graph, planner, DEPTH_SHARE + 0.0001 * repeat, UNTIMED)  # budgets that differ by nothing: each is a run of its own
        for repeat in range(DEPTH_REPEATS)
        for graph in graphs
        for planner in (AUTO, "rockmate")
    ]
    if "checkmate" in planners:
        jobs += [Job(graph, "checkmate", DEPTH_SHARE, CHECKMATE_LIMIT_S) for graph in graphs[:3]]
    return jobs


def _depth_report(outcomes: Outcomes) -> Part:
    rows = []
    for depth in DEPTHS:
        row: dict[str, object] = {"depth": depth}
        for planner in (AUTO, "rockmate", "checkmate"):
            its = [o for job, o in outcomes.items() if job.instance == f"gpt2_{depth}_layers" and job.planner == planner]
            if its:
                row[f"{planner}_s"] = statistics.median(o.plan_seconds for o in its)
                row[f"{planner}_overhead"] = min((o.overhead for o in its if o.overhead is not None), default=None)
                row[f"{planner}_status"] = its[0].status.replace("_", " ")
        rows.append(row)
    columns = [("depth", "layers", "{}")]
    for planner in (AUTO, "rockmate", "checkmate"):
        columns += [(f"{planner}_s", f"{planner}, s", "{:.2f}"), (f"{planner}_overhead", "overhead", "{:.2%}")]
    columns.append(("checkmate_status", "checkmate", "{}"))
    part = Part([Table(f"GPT-2 by depth at {DEPTH_SHARE:.0%}: median plan seconds of {DEPTH_REPEATS}", columns, rows)])
    for planner in (AUTO, "rockmate"):
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


# The published instances, and generated ones of the same kind.


def published_section(graph_names: Mapping[str, str]) -> Section:
    """``graph_names``: for each instance, the name that its file gives the graph."""

    def figures(instance: str) -> list[Published]:
        return published_for(SAME_KIND.get(instance, graph_names.get(instance, "")))

    def seconds_for(figure: Published, limit_s: float) -> float:
        """As long as theirs took, but no more than eight usual runs. What is left of it goes into reading the graph."""
        return min(0.9 * figure.seconds, 8 * limit_s) if figure.seconds else 8 * limit_s

    def jobs(runner: Runner, planners: Sequence[str], limit_s: float) -> list[Job]:
        return [
            Job(instance, AUTO, figure.share, seconds_for(figure, limit_s))
            for instance in runner.graphs
            for figure in figures(instance)
            if not (instance in SAME_KIND and figure.proved)
        ]

    def report(outcomes: Outcomes) -> Part:
        part = Part()
        rows = []
        for job, o in outcomes.items():
            for figure in (f for f in figures(job.instance) if f.share == job.share):
                same = job.instance not in SAME_KIND
                rows.append(
                    {
                        "instance": job.instance,
                        "share": job.share,
                        "auto": o.overhead,
                        "seconds": o.plan_seconds,
                        "figure": figure.overhead,
                        "its_seconds": figure.seconds or None,
                        "source": figure.source + ("" if same else ", another draw"),
                        "proved": figure.proved,
                    }
                )
                reached = o.overhead is not None and o.overhead <= figure.overhead + 5e-6
                in_time = not (figure.proved and figure.seconds) or o.plan_seconds <= figure.seconds
                aim = f"{'≤' if figure.proved else '<'} {figure.overhead:.3%}" + (
                    f" in {figure.seconds:.0f} s" if figure.seconds else ""
                )
                if not figure.proved:
                    reached = o.overhead is not None and o.overhead < figure.overhead
                shown = f"{percent(o.overhead)} in {o.plan_seconds:.1f} s"
                what = f"{job.instance} at {job.share:.0%} against {figure.source}" + ("" if same else " (another draw)")
                part.targets.append(Target(what, aim, shown, reached and in_time))
        columns = [
            ("instance", "instance", "{}"),
            ("share", "budget", "{:.0%}"),
            ("auto", "auto", "{:.3%}"),
            ("seconds", "s", "{:.1f}"),
            ("figure", "published", "{:.3%}"),
            ("its_seconds", "s", "{:.0f}"),
            ("source", "by", "{}"),
            ("proved", "proved", "yes/no"),
        ]
        part.tables.append(Table("Against published figures (overhead)", columns, rows))
        return part

    return Section("published", jobs, report)


SECTIONS = [
    Section("depth", _depth_jobs, _depth_report, alone=True),
    Section("scale", _scale_jobs, _scale_report, alone=True),
    Section("paper", _paper_jobs, _paper_report),
    Section("prototype", _prototype_jobs, _prototype_report),
    Section("levels", _levels_jobs, _levels_report),
]


# What the sweep says of each model: how far memory goes down for how much time.

FACTOR_OVERHEADS = (0.05, 0.10, 0.20)


def factors(outcomes: Sequence[Outcome], models: Sequence[str]) -> Part:
    """The store-all peak over the least peak that `auto` reaches within an overhead."""
    rows = []
    for model in models:
        its = [o for o in outcomes if o.job.instance == model and o.job.planner == AUTO and o.overhead is not None]
        if not its:
            continue
        row: dict[str, object] = {"model": model, "plain": its[0].store_all_peak_bytes}
        for limit in FACTOR_OVERHEADS:
            peaks = [o.peak_bytes for o in its if o.peak_bytes is not None and o.overhead is not None and o.overhead <= limit]
            row[f"at_{limit}"] = its[0].store_all_peak_bytes / min(peaks) if peaks else None
        least = min(o.peak_bytes for o in its if o.peak_bytes is not None)
        row["least"] = its[0].store_all_peak_bytes / least
        rows.append(row)
    columns = [("model", "model", "{}"), ("plain", "store-all peak", "bytes")]
    columns += [(f"at_{limit}", f"within {limit:.0%}", "{:.2f} x") for limit in FACTOR_OVERHEADS]
    columns.append(("least", "at the least budget", "{:.2f} x"))
    part = Part([Table("Activation memory: how many times less, for how much more time", columns, rows)])
    at_twenty = [float(str(row["at_0.2"])) for row in rows if row["at_0.2"] is not None]
    if rows:
        reached = sum(factor >= 2 for factor in at_twenty)
        part.targets.append(
            Target(
                "activation memory down by 2 to 5 x within 20 %",
                "every model",
                f"{reached} of {len(rows)}",
                reached == len(rows),
            )
        )
    return part


def average_cost(outcomes: Sequence[Outcome], models: Sequence[str]) -> list[Target]:
    """FastSA's averages on 23 graphs of vision and language models: 7 % at half the memory, 18 % at a quarter."""
    targets = []
    for share, figure in ((0.5, 0.07), (0.25, 0.18)):
        found = []
        for model in models:
            its = [o for o in outcomes if o.job.instance == model and o.job.planner == AUTO]
            if its:
                best = within(its, int(share * its[0].store_all_peak_bytes))
                if best is not None and best.overhead is not None:
                    found.append(best.overhead)
        if found:
            mean = statistics.fmean(found)
            shown = f"{mean:.1%} on the {len(found)} of {len(models)} models that get there"
            targets.append(Target(f"average over models at {share:.0%}", f"≤ {figure:.0%}", shown, mean <= figure))
    return targets
