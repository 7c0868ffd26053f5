"""The mark that ties a test to a line of docs/equivalence.md."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "pattern(row, model, outcome): the line of docs/equivalence.md that the test stands for")
