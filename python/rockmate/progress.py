"""A line in the terminal that says what takes long."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Tell = Callable[[str, float], None]

_SHOWN_AFTER_S = 2.0
_EVERY_S = 0.1
_STAGES = {"costs": "measuring the ops"}


class _Line:
    """``rockmate: measuring the ops 40 %`` on standard error, once it has taken some seconds; gone when all is done."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._next = self._begin + _SHOWN_AFTER_S
        self._width = 0

    def __call__(self, stage: str, done: float) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _EVERY_S
        what = _STAGES.get(stage, f"planning: {stage}")
        self._write(f"rockmate: {what} {done:.0%} ({now - self._begin:.0f} s)")

    def _write(self, text: str) -> None:
        print("\r" + text.ljust(self._width), end="", file=sys.stderr, flush=True)
        self._width = len(text)

    def clear(self) -> None:
        if self._width > 0:
            self._write("")
            print("\r", end="", file=sys.stderr, flush=True)


@contextmanager
def progress_shown(on_progress: Tell | None) -> Iterator[Tell | None]:
    """Whom to tell of the progress: the user's function, else a line where standard error is a terminal, else nobody."""
    if on_progress is not None or sys.stderr is None or not sys.stderr.isatty():
        yield on_progress
        return
    line = _Line()
    try:
        yield line
    finally:
        line.clear()
