"""What the terminal shows while a model is planned."""

from __future__ import annotations

import io
import sys

import pytest

from rockmate import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_in_a_terminal_that_goes_when_all_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_SHOWN_AFTER_S", 0.0)
    monkeypatch.setattr(progress, "_EVERY_S", 0.0)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with progress.progress_shown(None) as tell:
        assert tell is not None
        tell("costs", 0.25)
        tell("chain", 1.0)
    shown = terminal.getvalue().split("\r")
    assert shown[1].startswith("rockmate: measuring the ops 25%") and shown[2].startswith("rockmate: planning: chain 100%")
    assert shown[-1] == "" and shown[-2].strip() == "" and len(shown[-2]) >= len(shown[2].rstrip())


def test_nothing_for_what_is_quick_and_nothing_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with progress.progress_shown(None) as tell:
        assert tell is not None
        tell("costs", 0.5)
    assert terminal.getvalue() == ""
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress.progress_shown(None) as tell:
        assert tell is None


def test_the_users_function_is_told_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())

    def told(stage: str, done: float) -> None: ...

    with progress.progress_shown(told) as tell:
        assert tell is told
