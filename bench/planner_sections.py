"""A section of the planner benchmark: it names its jobs and, from what came of them, makes its tables and targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from planner_runs import Job, Outcome, Runner
from planner_sweep import within
from report import Part

Outcomes = Mapping[Job, Outcome]
LARGE = "gpt2_large"
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


def overhead_at(outcomes: Outcomes, instance: str, planners: Sequence[str], share: float) -> float | None:
    """The least of these planners at this budget, also by a plan that was made for a smaller one."""
    its = [o for job, o in outcomes.items() if job.instance == instance and job.planner in planners]
    budget = next((o.budget_bytes for o in its if o.job.share == share), None)
    best = within(its, budget) if budget is not None else None
    return best.overhead if best is not None else None


def bound_at(outcomes: Outcomes, instance: str, share: float) -> float:
    """The highest of the lower bounds that were proved at this budget."""
    its = (o.lower_bound for job, o in outcomes.items() if job.instance == instance and job.share == share)
    return max((bound for bound in its if bound is not None), default=0.0)
