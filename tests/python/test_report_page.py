"""The HTML pages in a real browser: quiet, offline, readable and tidy at every width, in light and dark."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import models
import pytest
from browser import NAMES, Page, find_browser, open_browser
from command import find_command

import rockmate
from rockmate import _planner

WINDOWS = [("light", 320), ("light", 360), ("light", 800), ("light", 1400), ("dark", 360), ("dark", 1400)]
CHECKS = (Path(__file__).parent / "page_checks.js").read_text()


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    path = find_browser()
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is on the PATH")
    with open_browser(path) as page:
        yield page


def chain(num_layers: int) -> Any:
    """A step of ``3 * num_layers`` forward ops and as many backward ops, in modules of three ops."""
    values: list[dict[str, Any]] = [{"name": "x", "bytes": 4096, "kind": "input"}]
    ops: list[dict[str, Any]] = []

    def add(name: str, target: str, module: str, direction: str, inputs: list[int], size: int, time_us: float) -> int:
        kind = "activation" if direction == "forward" else "gradient"
        values.append({"name": name, "bytes": size, "kind": kind, "producer": len(ops)})
        op = {"name": name, "target": target, "module": module, "pass": direction, "time_us": time_us}
        ops.append({**op, "inputs": inputs, "outputs": [len(values) - 1]})
        return len(values) - 1

    forward: list[tuple[str, str, int, int]] = []  # module, target, input, output
    x = 0
    for layer in range(num_layers):
        module = f"encoder.stages.{layer // 16}.layers.{layer}.feed_forward_network"
        calls = (("aten.mm.default", 1 << 20, 90.0), ("aten.gelu.default", 1 << 20, 5.0), ("aten.add.Tensor", 1 << 18, 2.0))
        for target, size, time_us in calls:
            y = add(f"{target.split('.')[1]}_{layer}", target, module, "forward", [x], size, time_us)
            forward.append((module, target, x, y))
            x = y
    values.append({"name": "tangent", "bytes": 1 << 18, "kind": "tangent"})
    gradient = len(values) - 1
    for number, (module, target, source, _) in reversed(list(enumerate(forward))):
        name = f"{target.split('.')[1]}_backward_{number}"
        gradient = add(name, target, module, "backward", sorted({source, gradient}), values[source]["bytes"], 100.0)
    graph = {"format": "rockmate-graph", "version": 1, "name": f"chain of {num_layers} layers", "device": "cpu"}
    return _planner.TrainingGraph.from_json(json.dumps({**graph, "values": values, "ops": ops}))


def one_op() -> Any:
    graph = {"format": "rockmate-graph", "version": 1, "name": "one", "device": "cpu"}
    values = [{"name": "x", "bytes": 4, "kind": "input"}, {"name": "y", "bytes": 8, "kind": "activation", "producer": 0}]
    ops = [{"name": "relu", "target": "aten.relu.default", "pass": "forward", "inputs": [0], "outputs": [1]}]
    return _planner.TrainingGraph.from_json(json.dumps({**graph, "values": values, "ops": ops}))


def write_gpt2(path: Path) -> None:
    model, inputs = models.gpt2(layers=12)
    plan = rockmate.Rockmate(model, budget="40%", sample_inputs=inputs, cost="v100").plan
    assert isinstance(plan, rockmate.Plan)
    plan.save_report(path, measured={"trace": plan.trace(), "time_us": 1.3 * plan.time_us, "note": "Made up for the test."})


def write_chain(path: Path) -> None:
    graph = chain(167)  # 1002 ops
    curve = _planner.plan_curve(graph)
    plan = curve.at(curve.store_all_peak_bytes // 2)
    assert plan is not None
    points = [(point.peak_bytes, point.overhead) for point in curve.plans]
    budget_bytes = curve.store_all_peak_bytes // 2
    path.write_text(_planner.plan_report(graph, plan.schedule, budget_bytes, points, "A long chain.", 5.0))


def write_one_op(path: Path) -> None:
    graph = one_op()
    schedule = _planner.schedule_from_sequence(graph, _planner.store_all_sequence(graph))
    path.write_text(_planner.plan_report(graph, schedule, 0, [(8, 0.0)], "", 1.0))


def write_runs(path: Path) -> None:
    traces = [{"label": "predicted", "bytes": [0, 9000, 100, 7000, 0]}, {"label": "measured", "bytes": [0, 9000, 90, 6000, 0]}]
    cells = ["123 MiB", "120 MiB", "12.3%", "1.06 (1.01 to 1.12)", "yes"]
    labels = ["plain", "checkpoint each layer of the model", "50%", "40%", "30%", "20%", "10%", "least", "another"]
    runs = [{"label": label, "cells": cells, "budget_bytes": 9000, "traces": traces} for label in labels]
    columns = ["predicted peak", "measured peak", "overhead", "step / plain (quartiles)", "equal to the bit"]
    page = {"title": "GPT-2 under budgets", "subtitle": "Two cores.", "columns": columns, "notes": ["A note."], "runs": runs}
    path.write_text(_planner.comparison_report(json.dumps(page)))


def write_planners(path: Path) -> None:
    command = find_command()
    if command is None:
        pytest.skip("the rockmate command is not installed")
    graph = path.with_suffix(".json")
    graph.write_text(chain(4).to_json())
    budgets = ["--budgets", "90%,70%,50%"]
    subprocess.run([command, "compare", graph, *budgets, "--time-limit", "1", "--html", path], check=True, capture_output=True)


@pytest.mark.parametrize("write", [write_gpt2, write_chain, write_one_op, write_runs, write_planners])
def test_page(browser: Page, tmp_path: Path, write: Callable[[Path], None]) -> None:
    path = tmp_path / "page.html"
    write(path)
    for scheme, width in WINDOWS:
        browser.prefer(scheme)
        browser.resize(width)
        browser.open(path)
        for unfolded in (False, True):
            browser.run(f"document.querySelectorAll('details').forEach((d) => {{ d.open = {str(unfolded).lower()}; }})")
            found = browser.run(f"({CHECKS})({width})")
            assert found["numTexts"] > 10
            assert found["complaints"] == [], (scheme, width, unfolded)
        point_at_charts(browser)
        assert browser.complaints == []
        assert browser.requests == []


BAD_PAGE = """<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<style>body { background: #fff } .dark { background: #222; color: #333 } .small { font-size: 10px }</style>
<p style="width: 2000px">wide</p>
<p class="dark">unreadable</p><p class="small">tiny</p>
<p style="position: absolute; top: 300px">one text</p><p style="position: absolute; top: 305px">another</p>
<svg width="100" height="30" viewBox="0 0 200 60"><text x="20" y="30" font-size="14">shrunk</text>
<text x="150" y="30" font-size="40">cut</text></svg>
<img src="http://127.0.0.1:9/picture.png"><script>console.error("a complaint"); undefined_function();</script>
"""


def test_checks_find_what_is_wrong(browser: Page, tmp_path: Path) -> None:
    path = tmp_path / "bad.html"
    path.write_text(BAD_PAGE)
    browser.prefer("light")
    browser.resize(360)
    browser.open(path)
    complaints = browser.run(f"({CHECKS})(360)")["complaints"]
    for part in (
        "px wide in a window of 360",
        "'unreadable' has a contrast of",
        "'tiny' is 10.0 px high",
        "'one text' and 'another' lie over each other",
        "'shrunk' is 7.0 px high",
        "'cut' is cut off",
    ):
        assert any(part in complaint for complaint in complaints), part
    assert len(complaints) == 6
    assert any("a complaint" in text for text in browser.complaints)
    assert any("undefined_function" in text for text in browser.complaints)
    assert browser.requests == ["http://127.0.0.1:9/picture.png"]


def test_estimate_in_a_notebook(browser: Page, tmp_path: Path) -> None:
    model, inputs = models.gpt2()
    body = rockmate.estimate(model, inputs, cost="h100")._repr_html_()
    style = "<style>:root { color-scheme: light dark; background: Canvas; color: CanvasText }</style>"
    viewport = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    path = tmp_path / "notebook.html"
    path.write_text(f'<!doctype html><meta charset="utf-8">{viewport}{style}<body>{body}</body>')
    for scheme, width in WINDOWS:
        browser.prefer(scheme)
        browser.resize(width)
        browser.open(path)
        found = browser.run(f"({CHECKS})({width})")
        assert found["numTexts"] > 60
        assert found["complaints"] == [], (scheme, width)
        assert browser.complaints == [] and browser.requests == []


def point_at_charts(browser: Page) -> None:
    """Where the pointer is, a box tells the figures of every line, inside the window."""
    count = browser.run("document.querySelectorAll('svg[data-left]').length")
    shown = 0
    for number in range(count):
        box = browser.run(
            f"(() => {{ const svg = document.querySelectorAll('svg[data-left]')[{number}]; svg.scrollIntoView();"
            "const box = svg.getBoundingClientRect(); return [box.left, box.top, box.width, box.height]; })()"
        )
        if box[2] == 0:
            continue  # drawn for another width
        shown += 1
        browser.move_to(box[0] + box[2] * 0.9, box[1] + box[3] * 0.5)
        text, left, right = browser.run(
            "(() => { const tip = document.getElementById('tip'), box = tip.getBoundingClientRect();"
            "return [tip.hidden ? '' : tip.textContent, box.left, box.right]; })()"
        )
        assert text.count("\n") >= 1
        assert "NaN" not in text and "undefined" not in text
        assert left >= 0 and right <= browser.run("innerWidth")
    assert shown > 0
