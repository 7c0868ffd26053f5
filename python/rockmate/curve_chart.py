"""The curve of overhead against memory as a small picture, for notebooks."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rockmate.plan import CurvePoint, format_bytes

WIDTH, HEIGHT = 330, 190  # drawn up to LARGEST pixels wide
LARGEST = 460
LEFT, RIGHT, TOP, BOTTOM = 48, 12, 26, 42
HIGHEST = 1.0  # plans that take more than twice the time would flatten the picture


def curve_chart(curve: Sequence[CurvePoint], store_all_peak_bytes: int) -> str:
    """Inline SVG: the activation peak from 0 to that without recomputation to the right, the overhead upwards.

    Text and axes have the colour of the text around them, so that the picture follows light and dark notebooks.

    Args:
        curve: the plans, ascending peak.
        store_all_peak_bytes: the peak without recomputation.
    """
    most = max(store_all_peak_bytes, max((point.peak_bytes for point in curve), default=0), 1)
    highest = min(max((point.overhead for point in curve), default=0.0), HIGHEST)
    step = _round_step(highest / 3) if highest > 0 else 0.1
    top = step * max(math.ceil(highest / step - 1e-9), 1)

    def x(peak_bytes: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * peak_bytes / most

    def y(overhead: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(overhead / top, 1.0)

    pieces = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" style="width:100%;max-width:{LARGEST}px;font:13px system-ui,sans-serif" '
        'role="img" aria-label="Overhead over activation peak" fill="currentColor">',
        f'<text x="4" y="14">overhead</text><text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">'
        "activation peak</text>",
    ]
    for number in range(round(top / step) + 1):
        at = y(number * step)
        pieces.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="currentColor" opacity="0.15"/>'
            f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{number * step:.{0 if step >= 0.01 else 2}%}</text>'
        )
    for share in (0.0, 0.5, 1.0):
        anchor = {0.0: "start", 1.0: "end"}.get(share, "middle")
        place = f'x="{x(share * most):.1f}" y="{HEIGHT - BOTTOM + 19}" text-anchor="{anchor}"'
        pieces.append(f"<text {place}>{format_bytes(share * most)}</text>")
    points = list(_steps(curve, most))
    drawn = " ".join(f"{x(peak):.1f},{y(overhead):.1f}" for peak, overhead in points)
    pieces.append(f'<polyline points="{drawn}" fill="none" stroke="#3d85c6" stroke-width="2"/></svg>')
    return "".join(pieces)


def _steps(curve: Sequence[CurvePoint], most: int) -> list[tuple[int, float]]:
    """A plan serves every budget from its own peak up to the next plan's."""
    steps: list[tuple[int, float]] = []
    for point in curve:
        if steps:
            steps.append((point.peak_bytes, steps[-1][1]))
        steps.append((point.peak_bytes, max(point.overhead, 0.0)))
    return [*steps, (most, steps[-1][1])] if steps else steps


def _round_step(step: float) -> float:
    """The next of 1, 2, 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= step * (1 - 1e-9))
