"""The planner from Python: plans, progress, interrupts, errors."""

import signal
from pathlib import Path

import pytest

from rockmate import _planner

GRAPHS = Path(__file__).parents[1] / "graphs"


@pytest.fixture(params=["chain4.json", "dropout.json"])
def graph(request):
    return _planner.TrainingGraph.load(str(GRAPHS / request.param))


def test_plans_are_verified_and_priced_by_the_simulator(graph):
    curve = _planner.plan_curve(graph)
    assert len(curve) == len(curve.plans) >= 1
    for plan in curve.plans:
        assert _planner.verify(graph, plan.schedule) is None
        assert _planner.simulate(graph, plan.schedule).peak_bytes == plan.peak_bytes
    assert curve.min_budget_bytes == curve.plans[0].peak_bytes
    assert curve.at(curve.min_budget_bytes - 1) is None
    assert curve.at(curve.store_all_peak_bytes).num_recomputed == 0
    assert [stage for stage, _ in curve.stages] == ["partition", "blocks", "chain", "whole graph", "simulate"]


def test_progress_is_reported_and_can_stop(graph):
    seen = []
    _planner.plan_curve(graph, on_progress=lambda stage, done: seen.append((stage, done)))
    assert {stage for stage, _ in seen} == {"partition", "blocks", "chain", "whole graph", "simulate"}
    assert all(0 <= done <= 1 for _, done in seen)
    with pytest.raises(KeyboardInterrupt):
        _planner.plan_curve(graph, on_progress=lambda stage, done: False)


def test_an_exception_in_progress_comes_through(graph):
    def fail(stage, done):
        raise RuntimeError("from the user")

    with pytest.raises(RuntimeError, match="from the user"):
        _planner.plan_curve(graph, on_progress=fail)


def test_a_signal_stops_planning(graph):
    with pytest.raises(KeyboardInterrupt):
        _planner.plan_curve(graph, on_progress=lambda stage, done: signal.raise_signal(signal.SIGINT))


def test_bad_options_are_value_errors(graph):
    options = _planner.PlannerOptions()
    options.save_levels = 31
    with pytest.raises(ValueError, match=r"\[plan\] save_levels"):
        _planner.plan_curve(graph, options)


def test_solved_blocks_are_cached(graph, tmp_path):
    options = _planner.PlannerOptions()
    options.cache_dir = str(tmp_path / "blocks")
    first = _planner.plan_curve(graph, options)
    files = list((tmp_path / "blocks").iterdir())
    assert files and not [f for f in files if f.suffix == ".tmp"]
    for file in files:
        file.write_text("damaged")
    second = _planner.plan_curve(graph, options)
    assert [p.sequence for p in first.plans] == [p.sequence for p in second.plans]
    assert all(file.read_text() != "damaged" for file in files)
