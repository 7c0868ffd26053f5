"""The training benchmark as one HTML page that needs nothing else: step time over peak for each model, and all tables."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from report import Part, Table

WIDTH, HEIGHT = 560, 300
LEFT, RIGHT, TOP, BOTTOM = 48, 16, 14, 40
STYLE = """
:root { color-scheme: light dark; --text: #222; --faint: #8884; --ours: #00798c; --theirs: #d1495b; --plain: #888 }
@media (prefers-color-scheme: dark) { :root { --text: #ddd; --ours: #4fc3d9; --theirs: #ff8a96 } }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 1300px; padding: 0 1em; color: var(--text) }
svg { max-width: 100%; height: auto }
svg text { font: 11px system-ui, sans-serif; fill: var(--text) }
.scroll { overflow-x: auto }
table { border-collapse: collapse; margin: .5em 0 1em }
th, td { padding: 3px 9px; border-bottom: 1px solid var(--faint); text-align: right; vertical-align: top }
th:first-child, td:first-child, td.text { text-align: left; min-width: 9em }
td.wrong { color: var(--theirs); font-weight: 600; text-align: left }
.ours { fill: var(--ours) } .theirs { fill: var(--theirs) } .plain { fill: var(--plain) }
.key i { display: inline-block; width: 10px; height: 10px; border-radius: 5px; margin: 0 5px 0 14px }
"""
KEY = (
    '<p class="key">Step time over measured peak, both of plain PyTorch: to the left and down is better. Hollow: wrong results.'
    '<i style="background:var(--ours)"></i>Rockmate<i style="background:var(--theirs)"></i>others'
    '<i style="background:var(--plain)"></i>plain</p>'
)


def write_page(path: Path, title: str, about: Mapping[str, Any], parts: Sequence[Part]) -> None:
    where = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in about.items())
    targets = Table(
        "What it must reach",
        [("what", "what", "{}"), ("target", "target", "{}"), ("reached", "reached", "{}"), ("met", "met", "yes/no")],
        [asdict(target) for part in parts for target in part.targets],
    )
    tables = [table for part in parts for table in part.tables]
    sections = "".join(_section(table) for table in ([targets] if targets.rows else []) + tables)
    path.write_text(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{html.escape(title)}</title>'
        f"<style>{STYLE}</style></head><body><h1>{html.escape(title)}</h1><p>{html.escape(where)}</p>{sections}</body></html>\n"
    )


def _section(table: Table) -> str:
    head = "".join(f"<th>{html.escape(heading)}</th>" for _, heading, _ in table.columns)
    lines = []
    for cells in table.cells():
        lines.append("<tr>" + "".join(f"<td{_class_of(cell)}>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
    notes = "".join(f"<p>{html.escape(note)}</p>" for note in table.notes)
    picture = _picture(table.rows)
    return (
        f"<h2>{html.escape(table.title)}</h2>{KEY + picture if picture else ''}"
        f'<div class="scroll"><table><tr>{head}</tr>{"".join(lines)}</table></div>{notes}'
    )


def _class_of(cell: str) -> str:
    if cell.startswith("wrong"):
        return ' class="wrong"'
    return ' class="text"' if len(cell) > 16 and " " in cell else ""


def _picture(rows: Sequence[Mapping[str, Any]]) -> str:
    """A point for each variant that was measured and timed; nothing for tables of other things."""
    points = [row for row in rows if row.get("share") is not None and row.get("ratio") is not None and "results" in row]
    if len(points) < 2:
        return ""
    most_share, most_ratio = max(float(row["share"]) for row in points), max(float(row["ratio"]) for row in points)
    least_ratio = min(0.9, *(float(row["ratio"]) for row in points))

    def x(share: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * share / most_share

    def y(ratio: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (ratio - least_ratio) / max(most_ratio - least_ratio, 1e-9)

    pieces = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="step time over peak">'
    ]
    for i in range(6):
        share, ratio = most_share * i / 5, least_ratio + (most_ratio - least_ratio) * i / 5
        pieces.append(
            f'<line x1="{x(share):.1f}" x2="{x(share):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="var(--faint)"/>'
        )
        pieces.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(ratio):.1f}" y2="{y(ratio):.1f}" stroke="var(--faint)"/>')
        pieces.append(f'<text x="{x(share):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{share:.0%}</text>')
        pieces.append(f'<text x="{LEFT - 6}" y="{y(ratio) + 4:.1f}" text-anchor="end">{ratio:.2f}</text>')
    pieces.append(f'<text x="{(LEFT + WIDTH) / 2:.0f}" y="{HEIGHT - 6}" text-anchor="middle">measured peak</text>')
    for row in points:
        name = str(row["variant"])
        kind = "plain" if name == "plain" else "ours" if name.startswith("Rockmate") else "theirs"
        hollow = ' fill-opacity="0.15" stroke="var(--theirs)"' if str(row["results"]).startswith("wrong") else ""
        at = f'cx="{x(float(row["share"])):.1f}" cy="{y(float(row["ratio"])):.1f}"'
        label = f"{name}: peak {float(row['share']):.0%}, step {float(row['ratio']):.2f} of plain"
        pieces.append(f'<circle {at} r="6" class="{kind}"{hollow}><title>{html.escape(label)}</title></circle>')
    return "".join([*pieces, "</svg>"])
