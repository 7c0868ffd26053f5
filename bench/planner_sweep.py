"""The sweep: every instance, budgets from 100 % down to the least, every planner; `auto` against the best of the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from planner_runs import Job, Outcome, Runner
from report import Part, Table, Target

AUTO = "auto"
SLOWER_BY = 0.001  # `auto` may be this much slower than the best of the others
NO_BUDGET = 1e-7  # a share that nothing meets: the answer tells the least budget that the planner knows of


@dataclass(frozen=True)
class Effort:
    """How much of the sweep a planner takes part in: graphs of at most ``most_ops``, a ``part`` of the budgets, ``seconds``
    each (None: as long as `auto`)."""

    most_ops: int = 10**9
    part: float = 0.2
    seconds: float | None = None


# The ones that solve the whole graph at once only end on small graphs.
EFFORTS = {
    "checkmate": Effort(most_ops=200, part=0.1, seconds=10),
    "checkmate-lp": Effort(most_ops=400, part=0.1, seconds=5),
    "moccasin": Effort(most_ops=500, part=0.1, seconds=10),
    "hiremate": Effort(part=0.1),
    "twremat": Effort(part=0.1),
    "rotor": Effort(part=0.5),
    "rockmate": Effort(part=0.25),
    "rockmate-chain": Effort(part=0.25),
    AUTO: Effort(part=1.0),
}
AUTO_THREADS = 2  # it runs what it has in threads, as it does for a user; the others search on one
MOST_OPS = 6000  # beyond, an instance is no part of the sweep
LEFT_OUT = ("gpt2_4_layers", "gpt2_6_layers", "gpt2_8_layers", "gpt2_medium_sdpa")  # told by their neighbours


def effort(planner: str) -> Effort:
    return EFFORTS.get(planner, Effort())


def threads_of(planner: str) -> int:
    return AUTO_THREADS if planner == AUTO else 1


def time_limit_for(time_limit_s: float, num_ops: int) -> float:
    """Large graphs get more: twice as much at 1000 ops."""
    return round(time_limit_s * (1 + num_ops / 1000), 1)


def floor_jobs(runner: Runner, instances: Iterable[str], time_limit_s: float) -> list[Job]:
    return [
        Job(instance, planner, NO_BUDGET, time_limit_for(time_limit_s, runner.num_ops(instance)), threads_of(planner))
        for instance in instances
        for planner in (AUTO, "rockmate")
    ]


def floors_of(runner: Runner, outcomes: Iterable[Outcome]) -> dict[str, int]:
    """The least budget that `auto` or Rockmate knows of, for each instance."""
    floors: dict[str, int] = {}
    for outcome in outcomes:
        name = outcome.job.instance
        known = floors.get(name, runner.store_all(name)[0])
        floors[name] = min(known, outcome.min_budget_bytes or known)
    return floors


def shares_between(floor_bytes: int, plain_bytes: int, count: int) -> list[float]:
    """Evenly from the store-all peak down to the least budget, which is met to the byte."""
    floor = (floor_bytes + 0.5) / plain_bytes
    return [1 - (1 - floor) * i / max(count - 1, 1) for i in range(count)]


def sweep_jobs(runner: Runner, floors: dict[str, int], planners: Sequence[str], budgets: int, time_limit_s: float) -> list[Job]:
    """Small graphs first."""
    jobs = []
    for instance in sorted(floors, key=runner.num_ops):
        shares = shares_between(floors[instance], runner.store_all(instance)[0], budgets)
        for planner in (name for name in planners if name != "store-all"):  # it has a plan at 100 % only
            its = effort(planner)
            if runner.num_ops(instance) > min(its.most_ops, MOST_OPS):
                continue
            scaled_s = time_limit_for(time_limit_s, runner.num_ops(instance))
            seconds = scaled_s if its.seconds is None else min(its.seconds, 5 * time_limit_s)
            step = round(1 / its.part)
            chosen = [share for i, share in enumerate(shares) if i % step == step - 1 or (planner == AUTO and i == 0)]
            jobs += [Job(instance, planner, share, seconds, threads_of(planner)) for share in chosen]
    return jobs


def within(outcomes: Iterable[Outcome], budget_bytes: int) -> Outcome | None:
    """The fastest plan within the budget, also of those made for a smaller one."""
    fitting = [o for o in outcomes if o.overhead is not None and o.peak_bytes is not None and o.peak_bytes <= budget_bytes]
    return min(fitting, key=lambda o: o.overhead or 0.0) if fitting else None


def report_sweep(outcomes: Sequence[Outcome], planners: Sequence[str]) -> Part:
    by_instance: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_instance.setdefault(outcome.job.instance, []).append(outcome)
    part = Part()
    feasible = compared = faster_or_equal = 0
    beaten: list[str] = []
    for instance, its in by_instance.items():
        table = _table(instance, its, planners)
        part.tables.append(table)
        for outcome in (o for o in its if o.job.planner == AUTO):
            others = within((o for o in its if o.job.planner != AUTO), outcome.budget_bytes)
            if others is None:
                continue
            compared += 1
            feasible += outcome.found
            assert others.overhead is not None
            if outcome.overhead is not None and 1 + outcome.overhead <= (1 + others.overhead) * (1 + SLOWER_BY):
                faster_or_equal += 1
            else:
                mine = "no plan" if outcome.overhead is None else f"{outcome.overhead:.2%}"
                beaten.append(
                    f"{instance} at {outcome.job.share:.1%}: auto {mine}, {others.job.planner} {others.overhead:.2%}"
                    + ("" if others.job.share == outcome.job.share else f" (made for {others.job.share:.1%})")
                )
    part.tables.append(_beaten(beaten))
    if compared:
        part.targets = [
            Target("auto has a plan wherever another has", "all", f"{feasible} of {compared}", feasible == compared),
            Target(
                f"auto is never slower than the best of the others by more than {SLOWER_BY:.1%}",
                "all",
                f"{faster_or_equal} of {compared}",
                faster_or_equal == compared,
            ),
        ]
    part.targets += [_least_is_met(outcomes), _bounds_hold(outcomes), *_near_checkmate(outcomes)]
    return part


def _table(instance: str, outcomes: Sequence[Outcome], planners: Sequence[str]) -> Table:
    """A row a budget, a column a planner: its overhead, or why it has none. A plus: proved to be the best of its kind."""
    shares = sorted({o.job.share for o in outcomes}, reverse=True)
    here = {(o.job.share, o.job.planner): o for o in outcomes}
    present = [planner for planner in planners if any(p == planner for _, p in here)]
    rows = []
    for share in shares:
        cells = {planner: _cell(here.get((share, planner))) for planner in present}
        auto = here.get((share, AUTO))
        bound = max(
            (o.lower_bound or 0.0 for (s, _), o in here.items() if s == share and o.lower_bound is not None), default=0.0
        )
        rows.append(
            {
                "share": share,
                **cells,
                "bound": bound,
                "seconds": auto.plan_seconds if auto else None,
            }
        )
    columns = [("share", "budget", "{:.1%}"), *((planner, planner, "{}") for planner in present)]
    columns += [("bound", "lower bound", "{:.2%}"), ("seconds", "auto, s", "{:.1f}")]
    return Table(f"{instance} (store-all peak {outcomes[0].store_all_peak_bytes:,} bytes)", columns, rows)


def _cell(outcome: Outcome | None) -> str | None:
    if outcome is None:
        return None
    if outcome.overhead is None:
        return outcome.status.replace("_", " ")
    return f"{outcome.overhead:.2%}" + ("+" if outcome.proved else "")


def _beaten(lines: Sequence[str]) -> Table:
    rows = [{"where": line} for line in lines] or [{"where": "nowhere"}]
    return Table("Where auto is beaten", [("where", "where", "{}")], rows)


def _least_is_met(outcomes: Sequence[Outcome]) -> Target:
    """The last budget of each instance is the least that was named when nothing could be had."""
    lowest: dict[str, Outcome] = {}
    for outcome in (o for o in outcomes if o.job.planner == AUTO):
        known = lowest.get(outcome.job.instance)
        if known is None or outcome.job.share < known.job.share:
            lowest[outcome.job.instance] = outcome
    met = sum(outcome.found for outcome in lowest.values())
    return Target("auto meets the least budget that it names", "always", f"{met} of {len(lowest)}", met == len(lowest))


def _bounds_hold(outcomes: Sequence[Outcome]) -> Target:
    """A plan that is faster than what another planner proved to be impossible would mean that one of the two is wrong."""
    broken = 0
    for outcome in outcomes:
        if outcome.lower_bound is None:
            continue
        same = (o for o in outcomes if o.job.instance == outcome.job.instance)
        best = within(same, outcome.budget_bytes)
        broken += best is not None and (best.overhead or 0.0) < outcome.lower_bound - 1e-9
    return Target("no plan is below a lower bound", "none", f"{broken} are", broken == 0)


def _near_checkmate(outcomes: Sequence[Outcome]) -> list[Target]:
    auto = {(o.job.instance, o.job.share): o for o in outcomes if o.job.planner == AUTO}
    finished = near = open_ = better = 0
    for outcome in (o for o in outcomes if o.job.planner == "checkmate"):
        mine = auto.get((outcome.job.instance, outcome.job.share))
        if mine is None or not (outcome.found or mine.found):
            continue
        if outcome.proved and outcome.overhead is not None:
            finished += 1
            near += mine.overhead is not None and 1 + mine.overhead <= (1 + outcome.overhead) * 1.01
        else:
            open_ += 1
            better += mine.overhead is not None and (outcome.overhead is None or mine.overhead <= outcome.overhead + 1e-9)
    targets = []
    if finished:
        targets.append(
            Target("where Checkmate finishes, auto is within 1 % of it", "all", f"{near} of {finished}", near == finished)
        )
    if open_:
        targets.append(
            Target("where Checkmate times out, auto is as good or better", "all", f"{better} of {open_}", better == open_)
        )
    return targets
