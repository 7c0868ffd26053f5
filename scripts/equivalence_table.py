"""Run the tests of tests/python/patterns and write docs/equivalence.md from them.

python scripts/equivalence_table.py           run them all, then write the table; a failure writes nothing
python scripts/equivalence_table.py -n 2      the same in two processes; with --resume FOLDER a run that was cut off goes on
python scripts/equivalence_table.py --no-run  write the table from the marks of the tests alone; keeps the line of the last run
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import subprocess
import sys
import tempfile
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


class _Collected:
    """The ids of the tests that there are; a plugin of pytest."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def pytest_collection_finish(self, session: Any) -> None:
        self.ids = [item.nodeid for item in session.items]


class _Counter:
    """Counts the tests that passed and writes each to a file; a plugin of pytest."""

    def __init__(self, passed: Path) -> None:
        self._passed = passed

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" and report.passed:
            with self._passed.open("a") as file:
                file.write(f"{report.nodeid}\n")


def _collect() -> list[str]:
    import pytest

    collected = _Collected()
    pytest.main(["-q", "-q", "--collect-only", "-m", "", str(TESTS)], plugins=[collected])
    return [id for id in collected.ids if "test_table.py" not in id]  # the check of this very page comes after it is written


def _run_share(ids: Path, passed: Path) -> int:
    import pytest

    return int(pytest.main(["-q", "-m", "", *_lines(ids)], plugins=[_Counter(passed)]))


def _run(processes: int, folder: Path) -> tuple[int, list[str]]:
    """Run the tests that ``folder`` has not on record as passed. Gives the number of those passed and the ids of the others."""
    ids = _collect()
    records = [folder / f"passed-{number}.txt" for number in range(processes)]
    done = _lines(*folder.glob("passed-*.txt"))
    left = [id for id in ids if id not in done]
    running = []
    for number, passed in enumerate(records):
        share = folder / f"share-{number}.txt"
        share.write_text("".join(f"{id}\n" for id in left[number::processes]))
        if share.stat().st_size:
            running.append(subprocess.Popen([sys.executable, __file__, "--share", str(share), str(passed)], cwd=ROOT))
    for process in running:
        process.wait()
    done = _lines(*folder.glob("passed-*.txt"))
    return len(done.intersection(ids)), [id for id in ids if id not in done]


def _lines(*files: Path) -> set[str]:
    return {line for file in files for line in file.read_text().splitlines()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-run", action="store_true", help="write the table without running the tests")
    parser.add_argument("-n", "--processes", type=int, default=1, help="run the tests in so many processes")
    parser.add_argument("--resume", type=Path, help="a folder that records what passed: what it has on record is not run again")
    parser.add_argument("--share", type=Path, nargs=2, help=argparse.SUPPRESS)  # what each of the processes is called with
    arguments = parser.parse_args()
    if arguments.share:
        return _run_share(*arguments.share)
    last_run = _last_run()
    if not arguments.no_run:
        import torch

        with tempfile.TemporaryDirectory() as temporary:
            folder = arguments.resume or Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            passed, failed = _run(arguments.processes, folder)
        if failed or not passed:
            print("the table stays as it is; these tests did not pass:", *failed, sep="\n  ", file=sys.stderr)
            return 1
        last_run = f"{passed} tests passed, {datetime.date.today()}, torch {torch.__version__}."
    TABLE.write_text(page(last_run))
    return 0


if __name__ == "__main__":
    sys.exit(main())
