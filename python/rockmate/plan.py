"""What a user sees of a plan."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from rockmate import _planner

if TYPE_CHECKING:
    from rockmate.meter import Peak

    Measured: TypeAlias = Peak | int | Sequence[int] | Mapping[str, Any] | str | Path


def format_bytes(count: float) -> str:
    """``1536`` as ``'1.5 KiB'``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.4g} {unit}"
        count /= 1024
    raise AssertionError


@dataclass(frozen=True)
class CurvePoint:
    """One plan of the curve: its peak in bytes and its overhead (0.1 means 10 % more time)."""

    peak_bytes: int
    overhead: float


@dataclass(frozen=True)
class Plan:
    """A plan for one step of one model at one input size.

    Attributes:
        budget_bytes: the activation budget asked for.
        peak_bytes: the predicted peak, simulated; on the CPU it is the measured one to the byte.
        store_all_peak_bytes: the peak without recomputation, the 100 % of budgets given as shares.
        min_budget_bytes: the least budget that can be met.
        overhead: predicted time over the time without recomputation, minus one.
        time_us: predicted time of forward and backward, in microseconds.
        recomputed: name, call and module of each op that is computed again, in order of recomputation.
        kept: (name, bytes, module) of each value that is held from the forward to the backward pass.
        curve: all plans that are worth having, from the least peak to the fastest.
        note: how the model was planned, in a sentence.
        stages: seconds spent in each stage of capture and planning.
        compiler: who runs the plan. Inductor fuses ops: ``peak_bytes`` and ``time_us`` are those of the unfused ones.
    """

    budget_bytes: int
    peak_bytes: int
    store_all_peak_bytes: int
    min_budget_bytes: int
    overhead: float
    time_us: float
    recomputed: list[str]
    kept: list[tuple[str, int, str]]
    curve: list[CurvePoint]
    planner: str
    num_blocks: int
    num_block_classes: int
    has_chain: bool
    note: str
    stages: dict[str, float]
    graph: Any  # _planner.TrainingGraph
    schedule: Any  # _planner.Schedule
    compiler: str = "native"

    @property
    def kept_bytes(self) -> int:
        return sum(size for _, size, _ in self.kept)

    def trace(self) -> list[int]:
        """Predicted bytes held while each action of the step runs."""
        return list(_planner.simulate(self.graph, self.schedule).bytes_inside)

    def save_report(
        self, path: str | Path, *, measured: Measured | None = None, planners_seconds: float = 5.0, note: str = ""
    ) -> None:
        """Write the plan as one HTML page that needs no network, in light and dark, for screens and phones.

        Args:
            path: the HTML file.
            measured: a run of the step to put beside the prediction: what :func:`rockmate.measure_peak` returned, a peak in
                bytes, the bytes after every allocation and free, a mapping with ``peak_bytes``, ``time_us``, ``trace`` and
                ``note`` (all may be left out), or the path of a ``rockmate-measured`` file.
            planners_seconds: how long the quick planners (Chen, Kusumoto, Rotor, DTR, PyTorch's memory budget) may work for
                their points beside the curve; 0 leaves them out.
            note: a sentence below the title.

        Raises:
            ValueError: when ``measured`` is none of that, or holds neither a peak nor a time.
        """
        page = _planner.plan_report(
            self.graph,
            self.schedule,
            self.budget_bytes,
            [(point.peak_bytes, point.overhead) for point in self.curve],
            note or f"On {self.graph.device}, {self.note}",
            planners_seconds,
            None if measured is None else _measured_json(measured),
        )
        Path(path).write_text(page, encoding="utf-8")

    def save(self, graph_path: str | Path, schedule_path: str | Path) -> None:
        """Write graph and schedule as JSON, for the ``rockmate`` command and for bug reports."""
        Path(graph_path).write_text(self.graph.to_json())
        Path(schedule_path).write_text(self.schedule.to_json())

    def __str__(self) -> str:
        return f"{_summary(self)}. {self.note}"


@dataclass(frozen=True)
class PiecesPlan:
    """The plans of a model that was captured in pieces, which keep one budget together.

    Attributes:
        budget_bytes: the activation budget asked for.
        peak_bytes: the predicted peak of a step, over all ways through the model seen so far. At least the measured one, except
            for what ops between the pieces hold only while they run.
        store_all_peak_bytes: the same without recomputation, the 100 % of budgets given as shares.
        min_budget_bytes: the least budget that can be met.
        overhead: predicted time over the time without recomputation, minus one.
        time_us: predicted time of forward and backward, in microseconds.
        between_bytes: what ops between the pieces save for the backward pass or hand to a piece.
        pieces: a plan for each call of a piece; branches follow each other.
        compiler: who runs the pieces, see :class:`Plan`.
    """

    budget_bytes: int
    peak_bytes: int
    store_all_peak_bytes: int
    min_budget_bytes: int
    overhead: float
    time_us: float
    between_bytes: int
    pieces: list[Plan]
    compiler: str = "native"

    @property
    def recomputed(self) -> list[str]:
        """Name, call and module of each op that is computed again, piece by piece."""
        return [op for piece in self.pieces for op in piece.recomputed]

    @property
    def kept(self) -> list[tuple[str, int, str]]:
        """(name, bytes, module) of each value that is held from the forward to the backward pass, piece by piece."""
        return [value for piece in self.pieces for value in piece.kept]

    @property
    def kept_bytes(self) -> int:
        return sum(size for _, size, _ in self.kept)

    def save_report(self, path: str | Path) -> None:
        """Write the plans of all pieces as one HTML page: a table, and the memory of each piece over its part of the step."""
        runs = [
            {
                "label": f"{number}. {piece.graph.name or 'piece'}",
                "cells": [
                    format_bytes(piece.peak_bytes),
                    format_bytes(piece.store_all_peak_bytes),
                    f"{piece.overhead:.1%}",
                    str(len(piece.recomputed)),
                    format_bytes(piece.kept_bytes),
                ],
                "traces": [{"label": "predicted", "bytes": piece.trace()}],
            }
            for number, piece in enumerate(self.pieces, start=1)
        ]
        page = {
            "title": "Training plan in pieces",
            "subtitle": str(self),
            "columns": ["predicted peak", "without recomputation", "overhead", "recomputed ops", "kept for the backward pass"],
            "runs": runs,
        }
        Path(path).write_text(_planner.comparison_report(json.dumps(page)), encoding="utf-8")

    def __str__(self) -> str:
        return (
            f"{_summary(self)}. Planned in {len(self.pieces)} pieces; ops between them hold {format_bytes(self.between_bytes)}."
        )


def _measured_json(measured: Measured) -> str:
    """What was measured, as a ``rockmate-measured`` file holds it."""
    if isinstance(measured, (str, Path)):
        return Path(measured).read_text(encoding="utf-8")
    if isinstance(measured, bool):
        raise ValueError("[measured] True or False is no measurement; give the peak in bytes, or what measure_peak returned")
    if isinstance(measured, int):
        fields: dict[str, Any] = {"peak_bytes": measured}
    elif isinstance(measured, Mapping):
        fields = dict(measured)
    elif isinstance(measured, Sequence):
        fields = {"trace": list(measured)}
    else:
        fields = {"peak_bytes": measured.activation_bytes, "trace": list(measured.trace)}
    return json.dumps({"format": "rockmate-measured", "version": 1, **fields})


def _summary(plan: Plan | PiecesPlan) -> str:
    share = plan.peak_bytes / max(plan.store_all_peak_bytes, 1)
    return (
        f"budget {format_bytes(plan.budget_bytes)}, predicted peak {format_bytes(plan.peak_bytes)} "
        f"({share:.0%} of {format_bytes(plan.store_all_peak_bytes)}), overhead {plan.overhead:.1%}, "
        f"{len(plan.recomputed)} ops recomputed, {format_bytes(plan.kept_bytes)} kept between forward and backward; "
        f"least budget {format_bytes(plan.min_budget_bytes)}"
        + ("; compiled by Inductor, predicted for the unfused ops" if plan.compiler == "inductor" else "")
    )
