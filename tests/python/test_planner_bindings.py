"""What crosses the border between Python and the planning library: types, errors, files."""

import ast
import json
from pathlib import Path

import pytest

from rockmate import _planner

GRAPH = {
    "format": "rockmate-graph",
    "version": 1,
    "name": "example",
    "device": "cpu",
    "values": [
        {"name": "x", "bytes": 7, "kind": "input"},
        {"name": "h", "bytes": 1000, "kind": "activation", "producer": 0},
        {"name": "y", "bytes": 100, "kind": "activation", "producer": 1},
        {"name": "loss", "bytes": 4, "kind": "activation", "retention": "step_end", "producer": 2},
        {"name": "dloss", "bytes": 5, "kind": "tangent"},
        {"name": "dx", "bytes": 30, "kind": "gradient", "retention": "step_end", "producer": 3},
    ],
    "ops": [
        {"name": "exp", "inputs": [0], "outputs": [1], "time_us": 2},
        {"name": "relu", "inputs": [1], "outputs": [2], "time_us": 1},
        {"name": "sum", "inputs": [2], "outputs": [3], "time_us": 1},
        {"name": "back", "pass": "backward", "inputs": [4, 2], "outputs": [5], "time_us": 1},
    ],
}


@pytest.fixture
def graph():
    return _planner.TrainingGraph.from_json(json.dumps(GRAPH))


def test_graph_attributes(graph):
    assert (graph.name, graph.device) == ("example", "cpu")
    assert (graph.num_ops, graph.num_values, graph.num_forward_ops) == (4, 6, 3)
    assert [op.name for op in graph.ops] == ["exp", "relu", "sum", "back"]
    assert [op.is_forward for op in graph.ops] == [True, True, True, False]
    assert graph.ops[3].inputs == [4, 2]
    loss = graph.values[3]
    assert (loss.kind, loss.retention, loss.producer, loss.bytes) == ("activation", "step_end", 2, 4)
    assert [v.charged_bytes for v in graph.values] == [0, 1000, 100, 4, 5, 30]
    with pytest.raises(AttributeError):
        loss.bytes = 5


def test_graph_files(graph, tmp_path):
    path = tmp_path / "graph.json"
    graph.save(str(path))
    assert _planner.TrainingGraph.load(str(path)).to_json() == graph.to_json()
    path.write_text(path.read_text()[:100])
    with pytest.raises(ValueError, match="cut short"):
        _planner.TrainingGraph.load(str(path))
    with pytest.raises(ValueError, match="can't read"):
        _planner.TrainingGraph.load(str(tmp_path / "missing.json"))


def test_costs_are_set_and_checked(graph):
    before = graph.copy()
    graph.set_op_cost(1, 3.5, 64)
    graph.set_value_bytes(1, 2000)
    assert (graph.ops[1].time_us, graph.ops[1].workspace_bytes, graph.values[1].bytes) == (3.5, 64, 2000)
    assert (before.ops[1].time_us, before.ops[1].workspace_bytes, before.values[1].bytes) == (1, 0, 1000)
    for bad in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="cost"):
            graph.set_op_cost(1, bad, 0)
    with pytest.raises(IndexError):
        graph.set_op_cost(4, 1.0, 0)
    with pytest.raises(ValueError):
        graph.set_value_bytes(1, -1)


def test_schedule_verify_simulate(graph):
    schedule = _planner.schedule_from_sequence(graph, [0, 1, 2, 1, 3])
    assert schedule.actions == [
        ("compute", 0),
        ("compute", 1),
        ("compute", 2),
        ("free", 2),
        ("compute", 1),
        ("free", 1),
        ("compute", 3),
        ("free", 4),
        ("free", 2),
    ]
    assert schedule.forward_end == 4
    assert _planner.verify(graph, schedule) is None
    simulation = _planner.simulate(graph, schedule)
    # relu again: h 1000, loss 4, dloss 5, y 100.
    assert simulation.bytes_inside == [1000, 1100, 1104, 1104, 1109, 1109, 139, 139, 134]
    assert simulation.bytes_after[-1] == 34
    assert (simulation.peak_bytes, simulation.peak_action, simulation.num_recomputed) == (1109, 4, 1)
    assert simulation.overhead == pytest.approx(1 / 5)
    assert _planner.alive_at(graph, schedule, 4) == [1, 2, 4, 3]

    bad = _planner.Schedule(schedule.actions[:4] + schedule.actions[6:], 4)
    assert "input 'y' is not alive" in _planner.verify(graph, bad)
    with pytest.raises(ValueError, match="no training step"):
        _planner.simulate(graph, bad)
    assert _planner.Schedule.from_json(schedule.to_json()).actions == schedule.actions


def test_budgets():
    assert _planner.parse_budget(123, 1000) == 123
    assert _planner.parse_budget(0.25, 1000) == 250
    assert _planner.parse_budget(1e-3, 1_000_000) == 1000
    assert _planner.parse_budget(1e-5, 1_000_000) == 10
    assert _planner.parse_budget("50%", 1000) == 500
    assert _planner.parse_budget("4GiB", 1000) == 4 << 30
    for nonsense in (0, -1, 0.0, -0.5, 1.5, float("nan"), float("inf"), "abc", "", None, True, [1], 10**40):
        with pytest.raises(ValueError, match=r"\[budget\]"):
            _planner.parse_budget(nonsense, 1000)


def test_costs_for_other_devices(graph):
    assert _planner.device_names() == ["cpu", "v100", "a100", "h100", "h200"]
    assert json.loads(_planner.device_to_json("h200"))["bandwidth_bytes_per_s"] == 4.8e12
    assert _planner.roofline_time_us(0, 0, "float32", "a100") == 5
    before = graph.ops
    _planner.apply_uniform(graph)
    assert [op.time_us for op in before] == [2, 1, 1, 1]  # a copy, not a view
    assert [op.time_us for op in graph.ops] == [1, 1, 1, 1]
    with pytest.raises(ValueError, match="flops"):
        _planner.apply_roofline(graph, "a100")
    with pytest.raises(ValueError, match="unknown"):
        _planner.apply_roofline(graph, "abacus")


def test_roofline_prices_a_graph():
    text = json.dumps(GRAPH | {"ops": [op | {"moved_bytes": 2039} for op in GRAPH["ops"]]})
    graph = _planner.TrainingGraph.from_json(text)
    _planner.apply_roofline(graph, "a100")
    assert [op.time_us for op in graph.ops] == pytest.approx([5 + 1e-3 / 0.85] * 4)
    assert graph.device == "a100"


def test_reports(graph):
    schedule = _planner.schedule_from_sequence(graph, [0, 1, 2, 1, 3])
    page = _planner.plan_report(graph, schedule, 2000, [(1109, 0.2), (1109, 0.0)], note="one block")
    assert page.startswith("<!doctype html>") and "one block" in page
    trace = _planner.simulate(graph, schedule).bytes_inside
    run = {"label": "50 %", "cells": ["1 KiB"], "traces": [{"label": "predicted", "bytes": trace}]}
    page = _planner.comparison_report(json.dumps({"title": "Runs", "columns": ["peak"], "runs": [run]}))
    assert "50 %" in page
    with pytest.raises(ValueError, match=r"\[report\] runs\[0\].cells: expected 2"):
        _planner.comparison_report(json.dumps({"columns": ["a", "b"], "runs": [run]}))


def test_the_stub_names_everything():
    stub = ast.parse(Path(_planner.__file__).with_name("_planner.pyi").read_text())
    defined = {node.name: node for node in stub.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    public = {name for name in dir(_planner) if not name.startswith("_")}
    assert public == set(defined)
    for name, node in defined.items():
        if isinstance(node, ast.FunctionDef):
            continue
        members = {getattr(m, "name", None) or getattr(getattr(m, "target", None), "id", None) for m in node.body}
        actual = {m for m in vars(getattr(_planner, name)) if not m.startswith("_")}
        assert actual == {m for m in members if m and not m.startswith("_")}, name
