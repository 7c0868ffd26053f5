"""The planner benchmark as one HTML page that needs nothing else: a picture for each instance, then all tables."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

from planner_runs import Outcome
from report import Part, Table, Target, show

WIDTH, HEIGHT = 460, 300
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 26, 40
COLORS = ["#d1495b", "#00798c", "#edae49", "#66a182", "#2e4057", "#8d5fd3", "#9a6324", "#5f9ea0", "#bf6fa0", "#808000"]
COLORS += ["#7f8c8d", "#e377c2", "#1f77b4", "#ff7f0e", "#17becf", "#a0522d"]
AUTO_COLOR = "#111111"
HIGHEST_OVERHEAD = 0.6  # plans that cost more are left out of the picture: they would flatten all others

STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 1450px; color: #222; padding: 0 1em }
.pictures { display: flex; flex-wrap: wrap; gap: 12px }
svg { background: #fff; border: 1px solid #ddd }
svg text { font: 11px system-ui, sans-serif; fill: #444 }
table { border-collapse: collapse; margin: .5em 0 2em; display: block; overflow-x: auto }
th, td { padding: 2px 9px; border-bottom: 1px solid #e4e4e4; text-align: right; white-space: nowrap }
th:first-child, td:first-child { text-align: left }
.no { color: #b00020; font-weight: 600 }
.key span { display: inline-block; margin-right: 1.2em }
.key i { display: inline-block; width: 22px; height: 3px; vertical-align: middle; margin-right: 5px }
"""


def page(
    title: str, about: Mapping[str, Any], parts: Sequence[Part], outcomes: Sequence[Outcome], planners: Sequence[str]
) -> str:
    color = colors(planners)
    key = "".join(f'<span><i style="background:{color[planner]}"></i>{html.escape(planner)}</span>' for planner in planners)
    by_instance: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_instance.setdefault(outcome.job.instance, []).append(outcome)
    pictures = "".join(picture(name, its, color) for name, its in by_instance.items())
    where = ", ".join(f"{key_.replace('_', ' ')} {value}" for key_, value in about.items())
    targets = _targets([target for part in parts for target in part.targets])
    tables = "".join(_table(table) for part in parts for table in part.tables)
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{html.escape(title)}</title><style>{STYLE}</style>"
        f"<h1>{html.escape(title)}</h1><p>{html.escape(where)}</p><h2>What it must reach</h2>{targets}"
        f"<h2>Overhead of each planner, from all of the memory to the least</h2><p class=key>{key}</p>"
        f"<div class=pictures>{pictures}</div>{tables}</html>\n"
    )


def colors(planners: Sequence[str]) -> dict[str, str]:
    others = [planner for planner in planners if planner != "auto"]
    return {"auto": AUTO_COLOR, **{planner: COLORS[i % len(COLORS)] for i, planner in enumerate(others)}}


def picture(name: str, outcomes: Sequence[Outcome], color: Mapping[str, str]) -> str:
    """Overhead over budget; a line a planner, broken where it has no plan."""
    drawn = [o for o in outcomes if o.overhead is not None and o.overhead <= HIGHEST_OVERHEAD]
    least = min((o.job.share for o in drawn), default=0.0)
    most = max((o.overhead for o in drawn if o.overhead is not None), default=0.1) or 0.1
    x_from = math.floor(least * 10) / 10
    step = _nice(most / 4)
    y_to = step * max(math.ceil(most / step), 1)

    def x(share: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (share - x_from) / max(1.0 - x_from, 1e-9)

    def y(overhead: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * overhead / y_to

    pieces = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">']
    pieces.append(f'<text x="{LEFT}" y="16" style="font-weight:600;font-size:13px">{html.escape(name)}</text>')
    for i in range(round(y_to / step) + 1):
        at = y(i * step)
        pieces.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="#eee"/>')
        pieces.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{i * step:.{0 if step >= 0.01 else 2}%}</text>')
    for i in range(6):
        share = x_from + (1 - x_from) * i / 5
        pieces.append(f'<text x="{x(share):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{share:.0%}</text>')
    pieces.append(
        f'<text x="{(LEFT + WIDTH) / 2:.0f}" y="{HEIGHT - 6}" text-anchor="middle">budget, of the store-all peak</text>'
    )
    for planner, stroke in sorted(color.items(), key=lambda item: item[0] == "auto"):
        its = sorted((o for o in outcomes if o.job.planner == planner), key=lambda o: o.job.share)
        width = 2.4 if planner == "auto" else 1.3
        for run in _unbroken(its):
            points = " ".join(f"{x(o.job.share):.1f},{y(o.overhead or 0.0):.1f}" for o in run)
            pieces.append(f'<polyline points="{points}" fill="none" stroke="{stroke}" stroke-width="{width}"/>')
            for o in run:
                tip = f"{planner} at {o.job.share:.1%}: {o.overhead:.2%}"
                place = f'cx="{x(o.job.share):.1f}" cy="{y(o.overhead or 0.0):.1f}"'
                pieces.append(f'<circle {place} r="{width + 0.6}" fill="{stroke}"><title>{tip}</title></circle>')
    return "".join([*pieces, "</svg>"])


def _unbroken(outcomes: Sequence[Outcome]) -> list[list[Outcome]]:
    runs: list[list[Outcome]] = [[]]
    for outcome in outcomes:
        if outcome.overhead is not None and outcome.overhead <= HIGHEST_OVERHEAD:
            runs[-1].append(outcome)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _nice(step: float) -> float:
    """The next of 1, 2, 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(max(step, 1e-6)))
    return next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= step * (1 - 1e-9))


def _targets(targets: Sequence[Target]) -> str:
    rows = "".join(
        f"<tr><td>{html.escape(t.what)}</td><td>{html.escape(t.target)}</td><td>{html.escape(t.reached)}</td>"
        + ("<td>yes</td></tr>" if t.met else "<td class=no>no</td></tr>")
        for t in targets
    )
    return f"<table><tr><th>what<th>target<th>reached<th>met</tr>{rows}</table>"


def _table(table: Table) -> str:
    head = "".join(f"<th>{html.escape(heading)}" for _, heading, _ in table.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(show(row.get(key), form))}</td>" for key, _, form in table.columns) + "</tr>"
        for row in table.rows
    )
    notes = "".join(f"<p>{html.escape(note)}</p>" for note in table.notes)
    return f"<h3>{html.escape(table.title)}</h3><table><tr>{head}</tr>{rows}</table>{notes}"
