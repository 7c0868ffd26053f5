"""Measured costs survive interruption, and damage to their file costs nothing but time."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import models
import pytest

import rockmate


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROCKMATE_CACHE_DIR", str(tmp_path))
    return tmp_path


def plan(**options: object) -> rockmate.Plan:
    model, inputs = models.gpt2(layers=1)
    wrapper = rockmate.Rockmate(model, sample_inputs=inputs, **options)
    assert wrapper.plan is not None
    return wrapper.plan


def costs(cache: Path) -> dict[str, object]:
    (file,) = cache.glob("costs-*.json")
    return json.loads(file.read_text())["entries"]


def test_second_time_nothing_is_measured(cache: Path) -> None:
    first = plan()
    measured = costs(cache)
    second = plan()
    assert costs(cache) == measured
    assert second.peak_bytes == first.peak_bytes and second.time_us == first.time_us
    assert [(p.peak_bytes, p.overhead) for p in second.curve] == [(p.peak_bytes, p.overhead) for p in first.curve]


def test_interrupted_measurement_keeps_what_it_has(cache: Path) -> None:
    def interrupt(stage: str, share: float) -> None:
        if stage == "costs" and share > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plan(on_progress=interrupt)
    kept = costs(cache)
    assert kept
    plan()
    assert costs(cache).items() >= kept.items()
    assert [path.name for path in cache.rglob("*") if ".tmp" in path.name] == []


def test_ctrl_c_while_solving(cache: Path) -> None:
    def interrupt(stage: str, share: float) -> None:
        if stage == "blocks":
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        plan(on_progress=interrupt, time_limit_s=200)
    assert [path.name for path in cache.rglob("*") if ".tmp" in path.name] == []
    assert plan().min_budget_bytes > 0


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"format": "other", "entries": {}}', '{"format": "rockmate-costs-3"}'])
def test_damaged_cache_is_set_aside(cache: Path, damage: str) -> None:
    good = plan()
    (file,) = cache.glob("costs-*.json")
    file.write_text(damage)
    with pytest.warns(UserWarning, match="damaged"):
        again = plan()
    assert again.peak_bytes == good.peak_bytes
    assert file.with_suffix(".json.corrupt").read_text() == damage


def test_damaged_entries_are_measured_again(cache: Path) -> None:
    good = plan()
    (file,) = cache.glob("costs-*.json")
    content = json.loads(file.read_text())
    content["entries"] = dict.fromkeys(content["entries"], "nonsense")
    file.write_text(json.dumps(content))
    assert plan().peak_bytes == good.peak_bytes


def test_cache_that_can_not_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("ROCKMATE_CACHE_DIR", str(blocked))
    with pytest.warns(UserWarning, match="can't be"):
        assert plan().min_budget_bytes > 0


def test_roofline_needs_no_measurement(cache: Path) -> None:
    assert plan(cost="v100").time_us > 0
    assert not list(cache.glob("costs-*"))
    with pytest.raises(ValueError, match="v101"):
        plan(cost="v101")
