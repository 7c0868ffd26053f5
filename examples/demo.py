"""Train GPT-2 on a real text inside a memory budget, next to plain PyTorch and to checkpointing.

Twelve layers, random weights, bytes as vocabulary; the text is the Python documentation that every CPython carries. Every way
of training gets its own copy of the model and the same batches; steps are interleaved, so that times compare. Ends with a
table, and the same as a page with the memory over time: demo.html.

    python examples/demo.py [--steps 5] [--width 256] [--output demo.html]
"""

from __future__ import annotations

import argparse
import copy
import json
import pydoc_data.topics
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from tqdm import tqdm
from transformers import GPT2Config, GPT2LMHeadModel

import rockmate
from rockmate import _planner
from rockmate.plan import format_bytes


@dataclass
class Contender:
    """One way to train: its model, and what was seen of it."""

    label: str
    model: nn.Module
    optimizer: torch.optim.Optimizer
    times_s: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    measured_peak: int = 0
    trace: list[int] = field(default_factory=list)
    equal: bool = True

    @property
    def plan(self) -> rockmate.Plan | None:
        return getattr(self.model, "plan", None)


def batches(tokens: int, batch: int) -> Iterator[torch.Tensor]:
    """Random windows of the text, as bytes, the same ones in every run."""
    text = "\n".join(pydoc_data.topics.topics.values()).encode()
    data = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    generator = torch.Generator().manual_seed(0)
    while True:
        starts = torch.randint(0, len(data) - tokens, (batch,), generator=generator)
        yield torch.stack([data[start : start + tokens] for start in starts]).long()


def gpt2(layers: int, width: int, tokens: int) -> GPT2LMHeadModel:
    torch.manual_seed(0)
    config = GPT2Config(
        n_layer=layers,
        n_embd=width,
        n_head=8,
        vocab_size=256,
        n_positions=tokens,
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
        loss_type="ForCausalLM",
    )
    return GPT2LMHeadModel(config).train()


def checkpoint_each_layer(model: GPT2LMHeadModel) -> GPT2LMHeadModel:
    for layer in model.transformer.h:
        plain_forward = layer.forward
        layer.forward = lambda *args, f=plain_forward, **kwargs: checkpoint(f, *args, use_reentrant=False, **kwargs)
    return model


@contextmanager
def planning_bar(label: str) -> Iterator[Callable[[str, float], None]]:
    with tqdm(total=100, desc=label, unit="%", leave=False, disable=None, bar_format="{desc:<44}|{bar}| {n:3.0f} %") as bar:

        def update(stage: str, share: float) -> None:
            bar.set_description_str(f"{label}: {stage}")
            bar.n = 100 * share
            bar.refresh()

        yield update


def train_step(contender: Contender, ids: torch.Tensor, seed: int) -> Any:
    """Forward and backward from a given point of the random stream. The result keeps the outputs alive."""
    torch.manual_seed(seed)
    output = contender.model(input_ids=ids, labels=ids)
    output.loss.backward()
    return output


def state_of(contender: Contender, output: Any) -> list[torch.Tensor]:
    gradients = [p.grad for p in contender.model.parameters()]
    return [output.loss.detach(), *gradients, *contender.model.buffers(), torch.get_rng_state()]


def run(contenders: list[Contender], steps: int, source: Iterator[torch.Tensor]) -> None:
    plain = contenders[0]
    with tqdm(total=(steps + 2) * len(contenders), desc="training, all in turn", unit="step", leave=False, disable=None) as bar:
        for step in range(steps + 2):  # one step to warm up, one under the allocation meter, then those that are timed
            ids = next(source)
            expected: list[torch.Tensor] = []
            for contender in contenders:
                outputs = []
                start = time.perf_counter()
                if step == 1:
                    peak = rockmate.measure_peak(
                        lambda c=contender, o=outputs, i=ids, s=step: o.append(train_step(c, i, s)),
                        exclude_grads_of=contender.model,
                    )
                    contender.measured_peak, contender.trace = peak.activation_bytes, peak.trace
                else:
                    outputs.append(train_step(contender, ids, step))
                elapsed = time.perf_counter() - start
                if step >= 2:
                    contender.times_s.append(elapsed)
                contender.losses.append(outputs[0].loss.item())
                state = state_of(contender, outputs[0])
                expected = expected or state
                if contender is not plain:
                    contender.equal &= all(torch.equal(a, b) for a, b in zip(expected, state, strict=True))
                bar.update()
            for contender in contenders:
                contender.optimizer.step()
                contender.optimizer.zero_grad()


COLUMNS = [
    "budget",
    "predicted peak",
    "measured peak",
    "of plain",
    "step / plain (quartiles)",
    "recomputed ops",
    "equal to the bit",
]


def cells(contender: Contender, plain: Contender) -> list[str]:
    ratios = [ours / theirs for ours, theirs in zip(contender.times_s, plain.times_s, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    plan = contender.plan
    return [
        format_bytes(plan.budget_bytes) if plan else "-",
        format_bytes(plan.peak_bytes) if plan else "-",
        format_bytes(contender.measured_peak),
        f"{contender.measured_peak / plain.measured_peak:.1%}",
        f"{middle:.2f} ({low:.2f} to {high:.2f})" if contender is not plain else "1",
        str(len(plan.recomputed)) if plan else "-",
        "yes" if contender.equal else "NO",
    ]


def print_table(contenders: list[Contender]) -> None:
    rows = [["", *COLUMNS], *([c.label, *cells(c, contenders[0])] for c in contenders)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for index, row in enumerate(rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        if index == 0:
            print("  ".join("-" * width for width in widths))


def write_page(contenders: list[Contender], subtitle: str, path: Path) -> None:
    runs = []
    for contender in contenders:
        traces = [{"label": "measured", "bytes": contender.trace}]
        if contender.plan is not None:
            traces.insert(0, {"label": "predicted", "bytes": contender.plan.trace()})
        runs.append(
            {
                "label": contender.label,
                "cells": cells(contender, contenders[0]),
                "budget_bytes": contender.plan.budget_bytes if contender.plan else 0,
                "traces": traces,
            }
        )
    page = {
        "title": "GPT-2 inside a memory budget",
        "subtitle": subtitle,
        "columns": COLUMNS,
        "notes": [
            "Activation memory: bytes held beyond what was there when the step began, parameter gradients left out.",
            "Loss, every gradient, buffers and the random stream are compared with plain PyTorch at every step.",
        ],
        "runs": runs,
    }
    path.write_text(_planner.comparison_report(json.dumps(page)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--steps", type=int, default=5, help="timed steps of each contender")
    parser.add_argument("--output", type=Path, default=Path("demo.html"))
    options = parser.parse_args()

    source = batches(options.tokens, options.batch)
    sample = next(source)
    inputs = {"input_ids": sample, "labels": sample}
    base = gpt2(options.layers, options.width, options.tokens)
    subtitle = (
        f"{options.layers} layers, width {options.width}, batch {options.batch} x {options.tokens} bytes, dropout 0.1, "
        f"{sum(p.numel() for p in base.parameters()) / 1e6:.1f} M parameters, {torch.get_num_threads()} threads"
    )
    print(f"GPT-2: {subtitle}")

    def contender(label: str, wrap: Callable[[nn.Module], nn.Module]) -> Contender:
        model = wrap(copy.deepcopy(base))
        return Contender(label, model, torch.optim.AdamW(model.parameters(), lr=3e-4))

    plain = contender("plain PyTorch", lambda model: model)
    plain_peak = rockmate.measure_peak(lambda: train_step(plain, sample, 0), exclude_grads_of=plain.model).activation_bytes
    plain.model.zero_grad()
    contenders = [plain, contender("checkpoint each layer", checkpoint_each_layer)]
    least = 0
    for share in (1.0, 0.5, 0.25, None):
        label = f"Rockmate, {share:.0%} of plain" if share else "Rockmate, least budget"
        budget = int(share * plain_peak) if share else least
        with planning_bar(label) as progress:
            # Without its cache this GPT-2 looks for packed sequences among the positions, unless it hears that it is compiled.
            ours = contender(
                label,
                lambda m, b=budget, p=progress: rockmate.Rockmate(
                    m, budget=b, sample_inputs=inputs, on_progress=p, told_compiling=True
                ),
            )
        assert ours.plan is not None
        least = ours.plan.min_budget_bytes
        contenders.append(ours)
        if share == 1.0:
            stages = ours.plan.stages
            print(
                f"planned in {stages['costs'] + stages['plan']:.1f} s "
                f"(costs {stages['costs']:.1f} s, plans for all budgets {stages['plan']:.1f} s): {ours.plan.note}"
            )
    run(contenders, options.steps, source)
    print_table(contenders)
    print(f"loss {plain.losses[0]:.3f} -> {plain.losses[-1]:.3f} in {len(plain.losses)} steps")
    write_page(contenders, subtitle, options.output)
    print(f"memory over time of each row: {options.output}")


if __name__ == "__main__":
    main()
