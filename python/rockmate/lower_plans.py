"""Keep a budget where the peak is known only once the step has run: under a compiler that changes what is planned.

A plan's peak is predicted for its ops one by one. Fused, they may hold more. The first step of a plan is measured
(:mod:`rockmate.measured_step`); when it held more than the budget, the next step runs by the plan whose predicted peak is lower
by as much as the measured one was too high:

    limit = predicted peak * budget / measured peak        and always below the plan before

That is tried a few times, since each plan is compiled anew. A lower plan is fused otherwise and does not always hold less: when
none of them keeps the budget, the one that held least stays, and a warning says so.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from rockmate.plan import Plan, format_bytes

log = logging.getLogger("rockmate")

#: How many plans are compiled for one budget.
MOST_PLANS = 5

Compiled = TypeVar("Compiled")


@dataclass(frozen=True)
class Trial(Generic[Compiled]):
    """A plan that was compiled and measured. Bytes."""

    plan: Plan
    measured_bytes: int
    compiled: Compiled


@dataclass
class LowerPlans(Generic[Compiled]):
    """The plans tried for one step so far."""

    trials: list[Trial[Compiled]] = field(default_factory=list)

    def judge(self, plan: Plan, measured_bytes: int, compiled: Compiled) -> int | Trial[Compiled] | None:
        """What to do after the first step of ``plan``, which held ``measured_bytes``.

        Returns:
            the predicted peak that the next plan may have at most; or an earlier trial to go back to; or ``None`` to stay.
        """
        trial = Trial(plan, measured_bytes, compiled)
        self.trials.append(trial)
        figures = (
            f"the compiled step held {format_bytes(measured_bytes)} at its peak; the budget is "
            f"{format_bytes(plan.budget_bytes)}, the peak predicted for the unfused ops {format_bytes(plan.peak_bytes)}"
        )
        if measured_bytes <= plan.budget_bytes:
            log.info("[inductor] %s", figures)
            return None
        limit = next_limit(plan, measured_bytes) if len(self.trials) < MOST_PLANS else None
        if limit is not None:
            log.warning("[inductor] %s. The next step runs by a plan for %s of unfused ops", figures, format_bytes(limit))
            return limit
        best = min(self.trials, key=lambda tried: tried.measured_bytes)
        log.warning(
            "[inductor] %s. None of %d plans keeps the budget when it is compiled; training goes on with the one that held "
            'least, %s. Ask for budget=%d, or for compiler="native", which keeps this one',
            figures,
            len(self.trials),
            format_bytes(best.measured_bytes),
            best.measured_bytes,
        )
        return None if best is trial else best


def next_limit(plan: Plan, measured_bytes: int) -> int | None:
    """The predicted peak of the next plan to try; ``None`` when there is no lower plan."""
    lower = [point.peak_bytes for point in plan.curve if point.peak_bytes < plan.peak_bytes]
    aim = plan.peak_bytes * plan.budget_bytes // measured_bytes
    return max((peak for peak in lower if peak <= aim), default=min(lower, default=None))
