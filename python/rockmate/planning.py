"""From a captured step to a plan: costs, curve, and the point of the curve that the budget picks."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

import torch

from rockmate import _planner
from rockmate.cache import cache_directory
from rockmate.capture import Capture
from rockmate.cost import measure_costs
from rockmate.errors import BudgetError
from rockmate.options import Budget, Options
from rockmate.piece_options import PieceOption, PieceOptions, piece_options
from rockmate.plan import CurvePoint, Plan, format_bytes
from rockmate.progress import progress_shown


@dataclass
class _Plans:
    """The plans of a graph: for all budgets, and those that were polished for one."""

    curve: Any
    polished: dict[int, Any] = field(default_factory=dict)


_GRAPHS_KEPT = 32
_plans: OrderedDict[tuple[Any, ...], _Plans] = OrderedDict()
_plans_lock = threading.Lock()


def plan_capture(
    capture: Capture, options: Options, stages: dict[str, float], limit_bytes: int | None = None
) -> tuple[Any, Plan]:
    """Plan a captured step. Returns the planner's own plan (sequence and schedule) and the user's view of it.

    ``limit_bytes``, where given, is what the predicted peak may be at most, below the budget (:mod:`rockmate.lower_plans`).

    Raises:
        BudgetError: when the budget is no budget or can't be met; names the least one that can.
    """
    graph = capture.training_graph
    _set_costs(capture, options, stages)
    start = time.perf_counter()
    plans = _plans_of(graph, options)
    curve = plans.curve
    stages["plan"] = time.perf_counter() - start
    stages.update({f"plan: {stage}": seconds for stage, seconds in curve.stages})
    budget_bytes = resolve_budget(options.budget, curve.store_all_peak_bytes)
    if curve.at(budget_bytes) is None:
        least = curve.min_budget_bytes
        raise BudgetError(
            f"[budget] {options.budget!r} ({format_bytes(budget_bytes)}) can't be met: the least activation budget that any "
            f"schedule found for this model keeps is {least} bytes ({format_bytes(least)}, "
            f"{least / max(curve.store_all_peak_bytes, 1):.1%} of {format_bytes(curve.store_all_peak_bytes)} without "
            f"recomputation). Ask for budget={least} or more",
            least,
        )
    limited = budget_bytes if limit_bytes is None else min(budget_bytes, limit_bytes)
    start = time.perf_counter()
    chosen = _plan_within(graph, plans, limited if curve.at(limited) is not None else budget_bytes, options)
    stages["polish"] = time.perf_counter() - start
    return chosen, _user_plan(graph, curve, chosen, budget_bytes, stages, options.compiler)


def plan_piece(capture: Capture, options: Options, stages: dict[str, float]) -> PieceOptions:
    """The ways to run a captured piece of a model; see :mod:`rockmate.piece_options`."""
    _set_costs(capture, options, stages)
    start = time.perf_counter()
    found = piece_options(capture.training_graph, _plans_of(capture.training_graph, options).curve)
    stages["plan"] = time.perf_counter() - start
    return found


def _set_costs(capture: Capture, options: Options, stages: dict[str, float]) -> None:
    start = time.perf_counter()
    graph = capture.training_graph
    if options.cost == "measured":
        with progress_shown(options.on_progress) as tell:
            measure_costs(capture, torch.device(graph.device), options.cache, tell)
    else:
        _planner.apply_roofline(graph, options.cost)
    stages["costs"] = time.perf_counter() - start


def resolve_budget(budget: Budget, store_all_peak_bytes: int) -> int:
    """The budget in bytes. ``int`` is bytes, ``float`` a share of the store-all peak, text either.

    Raises:
        BudgetError: for what is no budget.
    """
    try:
        if isinstance(budget, bool) or not isinstance(budget, (int, float, str)):
            raise ValueError(
                f"[budget] {budget!r} is no budget; give bytes (int), text such as '4GiB' or '50%', or a share such as 0.5"
            )
        text = f"{budget}B" if isinstance(budget, int) else f"{budget:.12f}" if isinstance(budget, float) else budget
        return int(_planner.parse_budget(text, store_all_peak_bytes))
    except ValueError as error:
        raise BudgetError(str(error)) from None


def check_budget(budget: Budget) -> None:
    """Refuse nonsense before anything is captured. Raises :class:`BudgetError`."""
    resolve_budget(budget, 1 << 40)


def _plans_of(graph: Any, options: Options) -> _Plans:
    """The plans of a graph, for all budgets. Graphs seen before, at whatever budget, are not planned again."""
    digest = hashlib.sha256(graph.to_json().encode()).hexdigest()
    key = (digest, options.levels, options.memory_steps, options.time_limit_s)
    with _plans_lock:
        if key in _plans:
            _plans.move_to_end(key)
            return _plans[key]
    with progress_shown(options.on_progress) as tell:
        plans = _Plans(_planner.plan_curve(graph, _settings(options), tell))
    with _plans_lock:
        _plans[key] = plans
        while len(_plans) > _GRAPHS_KEPT:
            _plans.popitem(last=False)
    return plans


def _plan_within(graph: Any, plans: _Plans, budget_bytes: int, options: Options) -> Any:
    """The curve's plan within the budget, polished where the user wants it to be.

    Inductor changes the order of the ops again, and fuses them: a peak that fills the budget to the last byte is exceeded then.
    """
    if not options.polish or options.compiler != "native":
        return plans.curve.at(budget_bytes)
    plan = plans.polished.get(budget_bytes)
    if plan is None:
        with progress_shown(options.on_progress) as tell:
            plan = _planner.polished_plan(graph, plans.curve, budget_bytes, _settings(options), tell)
        plans.polished[budget_bytes] = plan
    return plan


def _settings(options: Options) -> Any:
    settings = _planner.PlannerOptions()
    settings.save_levels = settings.peak_levels = options.levels
    settings.memory_steps = options.memory_steps
    settings.threads = options.threads
    settings.time_limit_s = options.time_limit_s
    settings.cache_dir = str(cache_directory() / "blocks") if options.cache else ""
    return settings


def plan_of_option(options: PieceOptions, option: PieceOption, budget_bytes: int, compiler: str = "native") -> Plan:
    """The user's view of the option chosen for a call of a piece."""
    return _user_plan(options.graph, options.curve, option, budget_bytes, {}, compiler)


def _user_plan(graph: Any, curve: Any, chosen: Any, budget_bytes: int, stages: dict[str, float], compiler: str) -> Plan:
    ops, values = graph.ops, graph.values
    actions, forward_end = chosen.schedule.actions, chosen.schedule.forward_end
    seen: set[int] = set()
    recomputed: list[str] = []
    for kind, id in actions:
        if kind != "compute":
            continue
        if id in seen:
            op = ops[id]
            recomputed.append(f"{op.name} ({op.target})" + (f" in {op.module}" if op.module else ""))
        seen.add(id)
    alive = _alive_after_forward(graph, actions[:forward_end])
    kept = []
    for value in (values[id] for id in alive):
        if value.retention == "last_use":
            kept.append((value.name, value.bytes, ops[value.producer].module))
    return Plan(
        budget_bytes=budget_bytes,
        peak_bytes=chosen.peak_bytes,
        store_all_peak_bytes=curve.store_all_peak_bytes,
        min_budget_bytes=curve.min_budget_bytes,
        overhead=chosen.overhead,
        time_us=chosen.time_us,
        recomputed=recomputed,
        kept=kept,
        curve=[CurvePoint(plan.peak_bytes, plan.overhead) for plan in curve.plans],
        planner=chosen.planner,
        num_blocks=curve.num_blocks,
        num_block_classes=curve.num_block_classes,
        has_chain=curve.has_chain,
        note=curve.note,
        stages=dict(stages),
        graph=graph,
        schedule=chosen.schedule,
        compiler=compiler,
    )


def _alive_after_forward(graph: Any, actions: list[tuple[str, int]]) -> list[int]:
    alive: dict[int, None] = {}
    ops = graph.ops
    for kind, id in actions:
        if kind == "compute":
            alive.update(dict.fromkeys(ops[id].outputs))
        else:
            alive.pop(id, None)
    return list(alive)
