"""Rockmate and its peers on one model: the same batch, equality and peak over three steps, then steps in turns.

A peer that fails, or whose results are not those of plain training, stays in the table with what went wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from peer_checkpoint import best_selective, checkpoint_layers
from peer_compile import compiled
from peer_models import PEER_MODELS, Wrap, on_device
from peer_original import stored_outcome
from report import Part, Table, Target
from running import Run, beyond_rounding, interleaved, largest_gradient_error, ratio_figures, same_results, step_of, train
from torch import nn
from workloads import Inputs, Make

import rockmate

COLUMNS = [
    ("variant", "variant", "{}"),
    ("peak_bytes", "measured peak", "bytes"),
    ("share", "of the plain peak", "{:.2f}"),
    ("step_ms", "step, ms", "{:.1f}"),
    ("ratio", "against plain", "{:.3f}"),
    ("ratio_low", "lower quartile", "{:.3f}"),
    ("ratio_high", "upper quartile", "{:.3f}"),
    ("results", "results", "{}"),
    ("gradient_error", "largest gradient difference", "{:.1e}"),
    ("note", "note", "{}"),
]
CUDA_COLUMN = ("allocated_bytes", "max_memory_allocated, with parameter gradients", "bytes")
MEMORY_BUDGETS = (0.5, 0.0)
LONGEST_ERROR = 160
IN_DOUBLE = 1e-6  # of a gradient: so much may differ in float64


def peers(name: str, seconds: float, quick: bool, device: torch.device, progress: Callable[[str], None]) -> Part:
    """The table of one model of :data:`peer_models.PEER_MODELS`."""
    peer = PEER_MODELS[name]
    make = on_device(peer.small if quick else peer.make, device)
    runs: dict[str, Run] = {}
    wraps: dict[str, Wrap] = {}
    notes: dict[str, str] = {}

    def attempt(label: str, wrap: Wrap) -> None:
        progress(label)
        wraps[label] = wrap
        try:
            runs[label] = train(make, wrap)
        except Exception as error:  # a peer may fail in any way
            notes[label] = _one_line(error)
        torch._dynamo.reset_code_caches()

    attempt("plain", lambda model: model)
    plain = runs["plain"]
    per_layer = "checkpoint per layer"
    attempt(per_layer, lambda model: checkpoint_layers(model, peer.layers_of(model), []))
    attempt("Rockmate at 100 %", _rockmate("100%"))
    half = "Rockmate at 50 %"
    attempt(half, _rockmate("50%"))
    if per_layer in runs:
        attempt("Rockmate at the peak of checkpoint per layer", _rockmate(runs[per_layer].peak_bytes))
    selective = "best selective checkpoint at the peak of Rockmate at 50 %"
    if half in runs:
        choices, least_bytes = best_selective(peer, make, plain, runs[half].peak_bytes, progress)
        if choices:
            runs[selective] = choices[0].run
            notes[selective] = "; then: ".join(f"{choice}" for choice in choices[:3])
        else:
            notes[selective] = (
                f"no choice of layers and policy keeps that peak; the least of any is {least_bytes / 2**20:.2f} MiB"
            )
    for compiler in ("aot_eager", "inductor"):
        for share in MEMORY_BUDGETS:
            attempt(f"torch.compile, {compiler}, memory budget {share}", compiled(share, compiler))
    attempt("Rockmate at 50 %, Inductor", _rockmate("50%", compiler="inductor"))
    notes["original Rockmate"] = stored_outcome()

    rows = [_row(label, plain, runs.get(label), notes.get(label)) for label in _order([*runs, *notes])]
    doubled = in_double(make)
    plain_in_double = None
    for row in rows:
        label = str(row["variant"])
        if "nductor" in label and str(row["results"]).startswith("wrong"):
            progress(f"{label}, in float64")
            plain_in_double = plain_in_double or train(doubled, steps=1)
            try:
                run = train(doubled, wraps[label], steps=1)
                row["results"] = _judged_in_double(plain_in_double, run) or row["results"]
            except Exception as error:  # a peer may fail in any way
                progress(f"{label}, in float64: {_one_line(error)}")
            torch._dynamo.reset_code_caches()
    _, inputs = make()
    progress("steps")
    steps = {label: step_of(run.model, inputs) for label, run in runs.items()}
    times = interleaved(steps, 0.0 if quick else seconds, least_rounds=3 if quick else 7)
    for row in rows:
        if row["variant"] in times:
            row.update(ratio_figures(times, str(row["variant"]), "plain"))
    columns = COLUMNS if device.type == "cpu" else [*COLUMNS[:3], CUDA_COLUMN, *COLUMNS[3:]]
    title = "Small model, to see that it works" if quick else peer.title
    return Part([Table(title, columns, rows)], _targets(name, {str(row["variant"]): row for row in rows}))


def _rockmate(budget: int | str, **options: Any) -> Wrap:
    def wrap(model: nn.Module) -> nn.Module:
        return rockmate.Rockmate(model, budget, **options)

    return wrap


_FIRST = ("plain", "checkpoint per layer", "best selective", "torch.compile", "Rockmate", "original")


def _order(labels: list[str]) -> list[str]:
    return sorted(dict.fromkeys(labels), key=lambda label: next(i for i, start in enumerate(_FIRST) if label.startswith(start)))


def in_double(make: Make) -> Make:
    def made() -> tuple[nn.Module, Inputs]:
        model, inputs = make()
        is_float = {name: isinstance(value, torch.Tensor) and value.is_floating_point() for name, value in inputs.items()}
        return model.double(), {name: value.double() if is_float[name] else value for name, value in inputs.items()}

    return made


def _judged(plain: Run, run: Run) -> str:
    if same_results(plain, run):
        return "equal to the bit"
    wrong = beyond_rounding(plain, run)
    return "equal but for rounding" if wrong is None else f"wrong: {wrong}"


def _judged_in_double(plain: Run, run: Run) -> str | None:
    """Where the model magnifies rounding: in float64 the same differences are a billion times smaller, or no rounding."""
    if beyond_rounding(plain, run, IN_DOUBLE) is not None:
        return None
    return f"equal but for rounding, which the model magnifies (in float64: {largest_gradient_error(plain, run):.0e})"


def _row(label: str, plain: Run, run: Run | None, note: str | None) -> dict[str, Any]:
    row: dict[str, Any] = {"variant": label, "note": note}
    if run is None:
        return {**row, "results": "none"}
    row["results"] = _judged(plain, run)
    row.update(peak_bytes=run.peak_bytes, share=run.peak_bytes / plain.peak_bytes)
    row.update(gradient_error=largest_gradient_error(plain, run), allocated_bytes=run.allocated_peak_bytes)
    plan = getattr(run.model, "plan", None)
    if plan is not None and note is None:
        missed = "" if run.peak_bytes <= plan.budget_bytes else ", exceeded"
        row["note"] = f"budget {plan.budget_bytes / 2**20:.2f} MiB{missed}, {len(plan.recomputed)} ops recomputed"
    return row


def _targets(name: str, rows: dict[str, dict[str, Any]]) -> list[Target]:
    ours, theirs = rows.get("Rockmate at 50 %", {}), rows.get("best selective checkpoint at the peak of Rockmate at 50 %", {})
    if "ratio" not in ours or "ratio" not in theirs:
        return []
    return [
        Target(
            f"{name}: step at 50 % against the best selective checkpoint at that peak",
            f"≤ {theirs['ratio']:.3f} of plain",
            f"{ours['ratio']:.3f}",
            ours["ratio"] <= theirs["ratio"],
        )
    ]


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:LONGEST_ERROR]}" + ("…" if len(text) > LONGEST_ERROR else "")
