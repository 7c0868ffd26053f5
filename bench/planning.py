"""How long capture, costs and planning take, and how much memory: each case in a fresh process.

python bench/planning.py            prints the table, about three minutes on two quiet cores
python bench/planning.py --write    stores it in bench/results/planning.json and .md too
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from report import Part, Table, Target, machine, publish
from torch._subclasses.fake_tensor import FakeTensorMode
from workloads import gpt2, gpt2_large

import rockmate

COLUMNS = [
    ("case", "case", "{}"),
    ("total_s", "capture, costs and plan, s", "{:.1f}"),
    ("cpu_s", "the same in CPU seconds", "{:.1f}"),
    ("trace_s", "of it PyTorch's tracing and compiling, s", "{:.1f}"),
    ("read_s", "reading the graph, s", "{:.1f}"),
    ("costs_s", "costs, s", "{:.1f}"),
    ("plan_s", "plan, s", "{:.1f}"),
    ("process_s", "whole process, imports and all, s", "{:.1f}"),
    ("resident_bytes", "peak resident", "bytes"),
    ("ops", "ops", "{:d}"),
    ("plans", "plans", "{:d}"),
    ("least", "least budget", "{:.1%}"),
]


def gpt2_large_fake() -> tuple[torch.nn.Module, Any]:
    with FakeTensorMode():
        return gpt2_large()


def plan_measured(model: torch.nn.Module, inputs: Any) -> rockmate.Plan:
    plan = rockmate.Rockmate(model, "50%", sample_inputs=inputs).plan
    assert plan is not None
    return plan


def plan_for_v100(model: torch.nn.Module, inputs: Any) -> rockmate.Plan:
    return rockmate.estimate(model, inputs, cost="v100").plan


# How each case's model is made (not timed) and planned (timed); the second case runs on the caches of the first.
FIRST, CACHED, LARGE = "GPT-2, 12 layers, first time", "GPT-2, 12 layers, cached costs", "GPT-2 large, fake, V100 roofline"
CASES = {FIRST: (gpt2, plan_measured), CACHED: (gpt2, plan_measured), LARGE: (gpt2_large_fake, plan_for_v100)}
LIMIT_S = {FIRST: 60.0, CACHED: 10.0, LARGE: 90.0}
LIMIT_BYTES = {LARGE: 4 << 30}


def run_case(name: str) -> dict[str, Any]:
    make_model, make_plan = CASES[name]
    model, inputs = make_model()
    begin, cpu_begin = time.perf_counter(), time.process_time()
    plan = make_plan(model, inputs)
    total, cpu_total = time.perf_counter() - begin, time.process_time() - cpu_begin
    stages = plan.stages
    row = {
        "case": name,
        "total_s": total,
        "cpu_s": cpu_total,
        "read_s": stages["capture"],
        "costs_s": stages["costs"],
        "plan_s": stages["plan"],
        "resident_bytes": peak_resident_bytes(),
        "ops": plan.graph.num_ops,
        "plans": len(plan.curve),
        "least": plan.min_budget_bytes / plan.store_all_peak_bytes,
        "note": plan.note,
        "stages": stages,
    }
    row["trace_s"] = total - sum(stages[stage] for stage in ("capture", "costs", "plan"))
    return row


def peak_resident_bytes() -> int:
    """The most memory that this process had resident."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def run_apart(name: str, cache: str, threads: int) -> dict[str, Any]:
    found = Path(cache) / "row.json"
    environment = {**os.environ, "ROCKMATE_CACHE_DIR": cache, "OMP_NUM_THREADS": str(threads)}
    command = [sys.executable, __file__, "--case", name, "--out", str(found), "--threads", str(threads)]
    begin = time.perf_counter()
    subprocess.run(command, check=True, env=environment)
    row: dict[str, Any] = {**json.loads(found.read_text()), "process_s": time.perf_counter() - begin}
    print(f"[{name}] {row['total_s']:.1f} s", file=sys.stderr, flush=True)
    return row


def targets_of(row: dict[str, Any]) -> list[Target]:
    name, seconds = row["case"], row["total_s"]
    targets = [Target(f"{name}: time", f"≤ {LIMIT_S[name]:.0f} s", f"{seconds:.1f} s", seconds <= LIMIT_S[name])]
    if name in LIMIT_BYTES:
        resident, limit = row["resident_bytes"], LIMIT_BYTES[name]
        targets.append(
            Target(f"{name}: memory", f"≤ {limit / 2**30:.0f} GiB", f"{resident / 2**30:.2f} GiB", resident <= limit)
        )
    return targets


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="store the results in bench/results")
    parser.add_argument("--name", default="planning", help="name of the stored results")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        torch.set_num_threads(options.threads)
        Path(options.out).write_text(json.dumps(run_case(options.case)))
        return
    about = machine(options.threads)
    with tempfile.TemporaryDirectory() as cache:
        rows = [run_apart(name, cache, options.threads) for name in CASES]
    table = Table("Capture, costs and plan, 10 x 10 budgets per block, each in a fresh process", COLUMNS, rows)
    table.notes = [f"{row['case']}: {row['note']}" for row in rows]
    publish(options.name, "Planning", about, [Part([table], [t for row in rows for t in targets_of(row)])], options.write)


if __name__ == "__main__":
    main()
