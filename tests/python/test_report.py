"""A plan tells what it does, as text, as a page, and as files for the command."""

from __future__ import annotations

from pathlib import Path

import models
import pytest
import torch
from torch import nn

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


def small_plan() -> rockmate.Plan:
    model = nn.Sequential(*(nn.Sequential(nn.Linear(32, 32), nn.ReLU()) for _ in range(4)))
    plan = rockmate.Rockmate(model, budget="100%", sample_inputs=(torch.randn(8, 32),), cost="cpu").plan
    assert isinstance(plan, rockmate.Plan)
    return plan


def test_what_was_measured_stands_beside_the_prediction(tmp_path: Path) -> None:
    plan, path = small_plan(), tmp_path / "plan.html"
    peak = rockmate.measure_peak(lambda: torch.zeros(1000))
    (tmp_path / "run.json").write_text('{"format": "rockmate-measured", "version": 1, "peak_bytes": 4000}')
    fields = {"peak_bytes": 4000, "time_us": 12.5, "note": "On <that> machine."}
    for measured in (peak, 4000, [0, 4000, 0], fields, tmp_path / "run.json"):
        plan.save_report(path, measured=measured, planners_seconds=0)
        page = path.read_text()
        assert "Predicted against measured" in page and "3.91 KiB" in page
    plan.save_report(path, measured=fields, planners_seconds=0)
    assert "On &lt;that&gt; machine." in path.read_text()
    plan.save_report(path, planners_seconds=0)
    assert "Predicted against measured" not in path.read_text()
    assert "chen-sqrt" not in path.read_text()
    plan.save_report(path)
    assert "chen-sqrt" in path.read_text()  # of the quick planners
    for nonsense in (True, {}, {"peak": 1}, [], -1, {"time_us": -1.0}):
        with pytest.raises(ValueError, match=r"\[measured\]"):
            plan.save_report(path, measured=nonsense, planners_seconds=0)


class Broken(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(32, 32), nn.Linear(32, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x).relu()
        torch._dynamo.graph_break()
        return self.second(x).relu().sum()


def test_plan_in_pieces(tmp_path: Path) -> None:
    model = rockmate.Rockmate(Broken(), budget="100%")
    model(torch.randn(8, 32)).backward()
    plan = model.plan
    assert isinstance(plan, rockmate.plan.PiecesPlan)
    plan.save_report(tmp_path / "plan.html")
    page = (tmp_path / "plan.html").read_text()
    assert "Training plan in pieces" in page and page.count("Memory over the step: ") == 3 * len(plan.pieces)
