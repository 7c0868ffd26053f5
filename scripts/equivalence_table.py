"""Run the tests of tests/python/patterns and write docs/equivalence.md from them.

python scripts/equivalence_table.py           run them all, then write the table; a failure writes nothing
python scripts/equivalence_table.py --no-run  write the table from the marks of the tests alone; keeps the line of the last run
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests" / "python" / "patterns"
TABLE = ROOT / "docs" / "equivalence.md"
LAST_RUN = "Last run: "

INTRODUCTION = """# Equivalence

Kinds of models and of training loops that re-materialization tools get wrong, gathered from public bug reports, and what
Rockmate does with each. Every line is a test in `tests/python/patterns`. **Equal** means: trained for three steps or more
at 100 %, at 50 % and at the least budget, against the plain model with the same seed, all of this is the same to the bit
after every step: the outputs (structure, types, values, strides, `requires_grad`, which are the same object or share
memory), the gradient of every parameter and input or its absence, the inputs, the buffers, how often side effects happened,
and the random streams of PyTorch, NumPy and Python; and the measured peak is within the budget. **Refused** means: an error
that says what and where, before anything of the model runs unless the line says otherwise.

This page is written by `scripts/equivalence_table.py` from the tests.
"""


def pattern_tests() -> list[Any]:
    """The test functions that carry a ``pattern`` mark, in the order of their files."""
    for folder in (TESTS, TESTS.parent):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    modules: list[ModuleType] = [importlib.import_module(path.stem) for path in sorted(TESTS.glob("test_*.py"))]
    return [
        test
        for module in modules
        for name, test in vars(module).items()
        if name.startswith("test_") and _marks(test, "pattern")
    ]


def _marks(test: Any, name: str) -> list[Any]:
    return [mark for mark in getattr(test, "pytestmark", ()) if mark.name == name]


def _variants(test: Any) -> str:
    """The text of the mark, with its parameters filled in as lists: ``"in place: {kind}"`` names every kind."""
    _, text, _ = _marks(test, "pattern")[0].args
    for mark in _marks(test, "parametrize"):
        names = [name.strip() for name in mark.args[0].split(",")] if isinstance(mark.args[0], str) else list(mark.args[0])
        values = [getattr(value, "values", (value,) if len(names) == 1 else value) for value in mark.args[1]]
        for index, name in enumerate(names):
            listed = "; ".join(dict.fromkeys(_text_of(value[index]) for value in values))
            text = text.replace("{" + name + "}", listed)
    return text.replace("{{", "{").replace("}}", "}")


def _text_of(value: Any) -> str:
    return value if isinstance(value, str) else str(value).removeprefix("torch.")


def table() -> str:
    tests = pattern_tests()
    sections = importlib.import_module("rows").SECTIONS
    parts = []
    for letter, (title, rows) in sections.items():
        parts.append(f"\n## {letter}. {title}\n\n| id | model or use | Rockmate | others |\n|---|---|---|---|")
        for row, others in rows.items():
            lines = [test for test in tests if _marks(test, "pattern")[0].args[0] == row]
            if not lines:
                raise SystemExit(f"no test is marked with {row}")
            for index, test in enumerate(lines):
                outcome = _marks(test, "pattern")[0].args[2]
                cells = [row, _variants(test), outcome, others if index == 0 else ""]
                parts.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(parts) + "\n"


def page(last_run: str) -> str:
    return f"{INTRODUCTION}\n{LAST_RUN}{last_run}\n{table()}"


def _last_run() -> str:
    lines = TABLE.read_text().splitlines() if TABLE.exists() else []
    return next((line.removeprefix(LAST_RUN) for line in lines if line.startswith(LAST_RUN)), "never.")


class _Counter:
    """Counts the tests that passed; a plugin of pytest."""

    def __init__(self) -> None:
        self.passed = 0

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.passed += report.when == "call" and report.passed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-run", action="store_true", help="write the table without running the tests")
    last_run = _last_run()
    if not parser.parse_args().no_run:
        import pytest
        import torch

        counter = _Counter()
        # The check of this very page comes after it is written.
        failed = pytest.main(["-q", "-m", "", "--deselect", f"{TESTS}/test_table.py", str(TESTS)], plugins=[counter])
        if failed:
            print("the table stays as it is: not all tests passed", file=sys.stderr)
            return int(failed)
        last_run = f"{counter.passed} tests passed, {datetime.date.today()}, torch {torch.__version__}."
    TABLE.write_text(page(last_run))
    return 0


if __name__ == "__main__":
    sys.exit(main())
