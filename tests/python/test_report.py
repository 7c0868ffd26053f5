"""A plan tells what it does, as text, as a page, and as files for the command."""

from __future__ import annotations

from pathlib import Path

import models

import rockmate
from rockmate import _planner


def test_plan_as_text_page_and_files(tmp_path: Path) -> None:
    model, inputs = models.gpt2()
    plan = rockmate.Rockmate(model, budget="50%", sample_inputs=inputs).plan
    assert plan is not None
    assert "budget" in str(plan) and "ops recomputed" in str(plan)
    assert plan.kept and plan.recomputed and any("transformer.h" in text for text in plan.recomputed)
    assert max(plan.trace()) == plan.peak_bytes
    assert [p.peak_bytes for p in plan.curve] == sorted(p.peak_bytes for p in plan.curve)

    plan.save_report(tmp_path / "plan.html")
    page = (tmp_path / "plan.html").read_text()
    assert page.lower().startswith("<!doctype html") and "http" not in page.replace("http://www.w3.org", "")

    plan.save(tmp_path / "graph.json", tmp_path / "schedule.json")
    graph = _planner.TrainingGraph.from_json((tmp_path / "graph.json").read_text())
    schedule = _planner.Schedule.from_json((tmp_path / "schedule.json").read_text())
    assert _planner.verify(graph, schedule) is None
    assert _planner.simulate(graph, schedule).peak_bytes == plan.peak_bytes
