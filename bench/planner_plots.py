"""The planner benchmark as one HTML page that needs nothing else: a picture for each instance, then all tables."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

from page_style import html_page, html_table, section
from planner_runs import Outcome
from report import Part

WIDTH, HEIGHT = 460, 300
LEFT, RIGHT, TOP, BOTTOM = 52, 22, 26, 40
AUTO_COLOR = "var(--ink)"
HIGHEST_OVERHEAD = 0.6  # plans that cost more are left out of the picture: they would flatten all others

STYLE = """
.pictures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 400px), 1fr)); gap: 18px }
svg .name { font-weight: 600; font-size: 13px; fill: var(--ink) }
"""


def page(
    title: str, about: Mapping[str, Any], parts: Sequence[Part], outcomes: Sequence[Outcome], planners: Sequence[str]
) -> str:
    color = colors(planners)
    key = "".join(f'<span><i style="color:{color[planner]}"></i>{html.escape(planner)}</span>' for planner in planners)
    by_instance: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_instance.setdefault(outcome.job.instance, []).append(outcome)
    pictures = "".join(picture(name, its, color) for name, its in by_instance.items())
    sections = section(
        "Overhead of each planner, from all of the memory to the least",
        f'<div class="key">{key}</div><div class="pictures">{pictures}</div>',
    )
    sections += "".join(section(table.title, html_table(table)) for part in parts for table in part.tables)
    return html_page(title, about, parts, sections, STYLE)


def colors(planners: Sequence[str]) -> dict[str, str]:
    """A hue for each planner; neighbours in the list are far apart on the wheel."""
    others = [planner for planner in planners if planner != "auto"]
    hues = {planner: f"hsl({round(i * 360 * 0.382) % 360} 62% var(--lightness))" for i, planner in enumerate(others)}
    return {"auto": AUTO_COLOR, **hues}


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
    pieces.append(f'<text x="{LEFT}" y="16" class="name">{html.escape(name)}</text>')
    for i in range(round(y_to / step) + 1):
        at = y(i * step)
        pieces.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" class="grid"/>')
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
            pieces.append(f'<polyline points="{points}" fill="none" style="stroke:{stroke}" stroke-width="{width}"/>')
            for o in run:
                tip = f"{planner} at {o.job.share:.1%}: {o.overhead:.2%}"
                place = f'cx="{x(o.job.share):.1f}" cy="{y(o.overhead or 0.0):.1f}"'
                pieces.append(f'<circle {place} r="{width + 0.6}" style="fill:{stroke}"><title>{tip}</title></circle>')
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
