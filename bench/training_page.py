"""The training benchmark as one HTML page that needs nothing else: step time over peak for each model, and all tables."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from page_style import html_page, html_table, section
from report import Part, Table

WIDTH, HEIGHT = 560, 300
LEFT, RIGHT, TOP, BOTTOM = 48, 22, 14, 40
STYLE = """
.ours { fill: var(--ours) } .theirs { fill: var(--theirs) } .plain { fill: var(--faint) }
"""
KEY = (
    "<p>Step time over measured peak, both of plain PyTorch: to the left and down is better. Hollow: wrong results.</p>"
    '<p class="key"><span><i style="color:var(--ours)"></i>Rockmate</span>'
    '<span><i style="color:var(--theirs)"></i>others</span>'
    '<span><i style="color:var(--faint)"></i>plain</span></p>'
)


def write_page(path: Path, title: str, about: Mapping[str, Any], parts: Sequence[Part]) -> None:
    sections = "".join(_section(table) for part in parts for table in part.tables)
    path.write_text(html_page(title, about, parts, sections, STYLE))


def _section(table: Table) -> str:
    picture = _picture(table.rows)
    return section(table.title, (KEY + picture if picture else "") + html_table(table))


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
        pieces.append(f'<line x1="{x(share):.1f}" x2="{x(share):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" class="grid"/>')
        pieces.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(ratio):.1f}" y2="{y(ratio):.1f}" class="grid"/>')
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
