"""Every file that docs/file_formats.md shows is read by what reads such files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rockmate import _planner

DOCUMENT = (Path(__file__).parents[2] / "docs" / "file_formats.md").read_text()


def example(heading: str) -> str:
    """The JSON block below a heading of the document."""
    found = re.search(rf"^## {heading}$.*?^```json\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
    assert found is not None, heading
    return found[1]


def graph() -> Any:
    return _planner.TrainingGraph.from_json(example("Graph"))


def test_graph_and_schedule() -> None:
    schedule = _planner.Schedule.from_json(example("Schedule"))
    assert _planner.verify(graph(), schedule) is None
    # While the backward pass begins: h 1000, its gradient 1000, the loss and its gradient 4 each.
    assert _planner.simulate(graph(), schedule).peak_bytes == 2008


def test_device(tmp_path: Path) -> None:
    path = tmp_path / "device.json"
    path.write_text(example("Device"))
    priced = graph()
    _planner.apply_roofline(priced, str(path))
    assert all(op.time_us >= 5 for op in priced.ops)  # launch_us


def test_measured() -> None:
    schedule = _planner.Schedule.from_json(example("Schedule"))
    page = _planner.plan_report(graph(), schedule, measured=example("Measured"))
    assert "Predicted against measured" in page and "2 cores, torch 2.13" in page


def test_comparison_of_runs() -> None:
    assert "A paragraph below the table." in _planner.comparison_report(example("Comparison of runs"))


@pytest.mark.parametrize("heading", ["Graph", "Schedule", "Device", "Measured", "Comparison of runs"])
def test_unknown_fields_are_refused(heading: str, tmp_path: Path) -> None:
    text = json.dumps({**json.loads(example(heading)), "no_such_field": 1})
    path = tmp_path / "device.json"
    path.write_text(text)
    schedule = _planner.Schedule.from_json(example("Schedule"))
    readers = {
        "Graph": lambda: _planner.TrainingGraph.from_json(text),
        "Schedule": lambda: _planner.Schedule.from_json(text),
        "Device": lambda: _planner.apply_roofline(graph(), str(path)),
        "Measured": lambda: _planner.plan_report(graph(), schedule, measured=text),
        "Comparison of runs": lambda: _planner.comparison_report(text),
    }
    with pytest.raises(ValueError, match="unknown field 'no_such_field'"):
        readers[heading]()
