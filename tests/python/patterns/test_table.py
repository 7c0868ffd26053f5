"""docs/equivalence.md is what the tests of this folder say."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]


def script() -> Any:
    spec = importlib.util.spec_from_file_location("equivalence_table", ROOT / "scripts" / "equivalence_table.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_committed_table_is_up_to_date() -> None:
    module = script()
    lines = (ROOT / "docs" / "equivalence.md").read_text().splitlines()
    last_run = next(line.removeprefix(module.LAST_RUN) for line in lines if line.startswith(module.LAST_RUN))
    assert lines == module.page(last_run).splitlines(), "run scripts/equivalence_table.py"
