"""The frame of the benchmarks' pages: one HTML file that needs nothing else, in the fonts and colours of the report page
(src/rockmate/report/page_assets.h), light or dark as the reader's system is."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from report import Part, Table

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fbfbf9; --card: #ffffff; --ink: #1d2128; --faint: #626b78; --edge: #e2e4e1; --bad: #b3261e;
  --ours: #1f6fb2; --theirs: #b85a16; --lightness: 47%;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171c; --card: #1c2027; --ink: #e8eaed; --faint: #9aa3b0; --edge: #303640; --bad: #ff8a80;
    --ours: #6cb2eb; --theirs: #f2a365; --lightness: 68%;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1300px; margin: 0 auto; padding: 28px 20px 60px; }
h1 { font-size: 26px; margin: 0 0 4px; }
h2 { font-size: 17px; margin: 0 0 10px; }
p { color: var(--faint); margin: 0 0 10px; overflow-wrap: anywhere; }
section { background: var(--card); border: 1px solid var(--edge); border-radius: 10px; padding: 18px 20px; margin-top: 18px; }
section p { margin: 10px 0 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; }
th, td { padding: 5px 10px; border-bottom: 1px solid var(--edge); text-align: right; vertical-align: top; white-space: nowrap; }
th { color: var(--faint); font-weight: 400; font-size: 13px; vertical-align: bottom; white-space: normal; }
th:first-child, td:first-child, td.text { text-align: left; }
td.text { white-space: normal; min-width: 12em; }
td.bad { color: var(--bad); font-weight: 600; }
tr:last-child > td { border-bottom: 0; }
svg { max-width: 100%; height: auto; display: block; margin-bottom: 12px; }
svg text { font: 12px system-ui, "Segoe UI", Roboto, sans-serif; fill: var(--faint); }
svg .grid { stroke: var(--edge); }
.key { display: flex; flex-wrap: wrap; gap: 4px 18px; font-size: 13px; margin: 0 0 10px; }
.key i { display: inline-block; width: 18px; border-top: 3px solid; vertical-align: middle; margin-right: 6px; }
@media (max-width: 560px) { main { padding: 16px 10px 40px; } section { padding: 14px 10px; } th, td { padding: 5px 7px; } }
"""


def html_page(title: str, about: Mapping[str, Any], parts: Sequence[Part], sections: str, style: str = "") -> str:
    """The page: what the figures depend on, the targets of all parts, then ``sections``. ``style`` is beside the common one."""
    where = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in about.items())
    targets = Table(
        "What it must reach",
        [("what", "what", "{}"), ("target", "target", "{}"), ("reached", "reached", "{}"), ("met", "met", "yes/no")],
        [asdict(target) for part in parts for target in part.targets],
    )
    if targets.rows:
        sections = section(targets.title, html_table(targets)) + sections
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{html.escape(title)}</title>'
        f"<style>{STYLE}{style}</style></head>\n<body><main><h1>{html.escape(title)}</h1><p>{html.escape(where)}</p>\n"
        f"{sections}</main></body></html>\n"
    )


def section(heading: str, body: str) -> str:
    return f"<section><h2>{html.escape(heading)}</h2>\n{body}</section>\n"


def html_table(table: Table) -> str:
    """The table with its notes. Targets that were missed and results that are wrong stand out."""
    head = "".join(f"<th>{html.escape(heading)}</th>" for _, heading, _ in table.columns)
    is_yes_no = [form == "yes/no" for _, _, form in table.columns]
    rows = ""
    for cells in table.cells():
        pairs = zip(cells, is_yes_no, strict=True)
        rows += "<tr>" + "".join(f"<td{_class_of(cell, yes_no)}>{html.escape(cell)}</td>" for cell, yes_no in pairs) + "</tr>\n"
    notes = "".join(f"<p>{html.escape(note)}</p>" for note in table.notes)
    return f'<div class="scroll"><table><tr>{head}</tr>\n{rows}</table></div>{notes}'


def _class_of(cell: str, is_yes_no: bool) -> str:
    is_bad = cell.startswith("wrong") or (is_yes_no and cell == "no")
    names = [name for name, has in (("bad", is_bad), ("text", len(cell) > 24 and " " in cell)) if has]
    return f' class="{" ".join(names)}"' if names else ""
