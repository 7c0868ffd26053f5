"""Tables of results: printed, and written as JSON and Markdown beside what machine made them."""

from __future__ import annotations

import datetime
import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

RESULTS = Path(__file__).parent / "results"


@dataclass
class Table:
    """Rows of raw figures and how to show them.

    ``columns`` holds (key, heading, format); a format is a ``str.format`` string, ``"bytes"`` (shown in MiB), or
    ``"yes/no"``. Missing and ``None`` figures are shown as a dash.
    """

    title: str
    columns: list[tuple[str, str, str]]
    rows: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def cells(self) -> list[list[str]]:
        return [[show(row.get(key), form) for key, _, form in self.columns] for row in self.rows]

    def to_markdown(self) -> str:
        headings = [heading for _, heading, _ in self.columns]
        table = [headings, *self.cells()]
        widths = [max(len(row[i]) for row in table) for i in range(len(headings))]
        lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in table]
        lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
        return "\n".join([f"## {self.title}", "", *lines, *(f"\n{note}" for note in self.notes)])


@dataclass
class Target:
    """One thing that a benchmark has to reach, and whether it did."""

    what: str
    target: str
    reached: str
    met: bool


@dataclass
class Part:
    """What one part of a benchmark found."""

    tables: list[Table] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)

    @staticmethod
    def from_json(data: dict[str, Any]) -> Part:
        tables = [Table(**{**table, "columns": [tuple(c) for c in table["columns"]]}) for table in data["tables"]]
        return Part(tables, [Target(**target) for target in data["targets"]])


def show(value: Any, form: str) -> str:
    if value is None:
        return "-"
    if form == "yes/no":
        return "yes" if value else "no"
    if form == "bytes":
        return f"{value / 2**20:.2f} MiB"
    return form.format(value)


def machine(threads: int) -> dict[str, Any]:
    """What the figures depend on."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "threads": threads,
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "system": platform.system(),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "load_average_1min": round(os.getloadavg()[0], 2),
    }


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def to_markdown(title: str, about: dict[str, Any], parts: Sequence[Part]) -> str:
    targets = Table(
        "What it must reach",
        [("what", "what", "{}"), ("target", "target", "{}"), ("reached", "reached", "{}"), ("met", "met", "yes/no")],
        [asdict(target) for part in parts for target in part.targets],
    )
    where = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in about.items())
    sections = [f"# {title}", where]
    if targets.rows:
        sections.append(targets.to_markdown())
    sections += [table.to_markdown() for part in parts for table in part.tables]
    return "\n\n".join(sections) + "\n"


def publish(name: str, title: str, about: dict[str, Any], parts: Sequence[Part], write: bool) -> None:
    """Print the results; with ``write``, store them in ``results/<name>.json`` and ``results/<name>.md`` too."""
    text = to_markdown(title, about, parts)
    print(text)
    if write:
        RESULTS.mkdir(exist_ok=True)
        data = {"title": title, "machine": about, "parts": [asdict(part) for part in parts]}
        (RESULTS / f"{name}.json").write_text(json.dumps(data, indent=1) + "\n")
        (RESULTS / f"{name}.md").write_text(text)
