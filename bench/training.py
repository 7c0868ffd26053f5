"""Training under Rockmate next to plain PyTorch and its own means: equality, peaks, step times.

    python bench/training.py                    prints everything, about half an hour on two quiet cores
    python bench/training.py --write            stores it in bench/results/training.json and .md too, with a page in .html
    python bench/training.py --only speed:      parts whose name begins so; peers:vit is one model against its peers
    python bench/training.py --resume FOLDER    keeps each finished part there, and takes those that are there as they are
    python bench/training.py --device cuda      the parts named peers: on an accelerator (the default where there is one)
    python bench/training.py --quick            a few budgets and rounds, to see that all of it works

Each part runs in a process of its own: those that time nothing two at a time on one thread each, then the timed ones alone.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path

import equality
import peer_target
import peers
import speed
import torch
from peer_models import PEER_MODELS
from report import RESULTS, Part, machine, publish
from training_page import write_page
from workloads import MODELS

Progress = Callable[[str], None]


def untimed_parts(options: argparse.Namespace) -> dict[str, Callable[[Progress], Part]]:
    budgets = 3 if options.quick else options.budgets
    return {f"equality:{name}": partial(equality.equality, name, budgets) for name in MODELS}


def timed_parts(options: argparse.Namespace) -> dict[str, Callable[[Progress], Part]]:
    seconds = 2.0 if options.quick else options.seconds
    return {
        "dispatch-bound": partial(speed.dispatch_bound, min(seconds, 10.0)),
        **{f"speed:{name}": partial(speed.speed, name, seconds) for name in MODELS},
        "peers:target": partial(peer_target.target, seconds),
        **{
            f"peers:{name}": partial(peers.peers, name, seconds, options.quick, torch.device(options.device))
            for name in PEER_MODELS
        },
    }


def run_apart(name: str, threads: int, arguments: list[str], kept: Path | None) -> Part:
    """Run one part in a fresh process, so that parts share no compiled code, caches in memory, or allocator state.

    With a folder ``kept``, what is there of an earlier run is taken, and what was run is stored.
    """
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        found = (kept or Path(folder)) / f"{name.replace(':', '-')}.json"
        if found.exists():
            print(f"[{name}] taken from {found}", file=sys.stderr, flush=True)
            return Part.from_json(json.loads(found.read_text()))
        command = [sys.executable, __file__, "--part", name, "--out", str(found), "--threads", str(threads), *arguments]
        subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": str(threads)})
        part = Part.from_json(json.loads(found.read_text()))
    print(f"[{name}] {time.perf_counter() - begin:.0f} s", file=sys.stderr, flush=True)
    return part


def run_one_part(options: argparse.Namespace) -> None:
    torch.set_num_threads(options.threads)

    begin = time.perf_counter()

    def progress(what: str) -> None:
        print(f"[{options.part}] {time.perf_counter() - begin:4.0f} s: {what}", file=sys.stderr, flush=True)

    part = {**untimed_parts(options), **timed_parts(options)}[options.part](progress)
    Path(options.out).write_text(json.dumps(asdict(part)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="store the results in bench/results")
    parser.add_argument("--name", default="training", help="name of the stored results")
    parser.add_argument("--only", default="", help="run only the parts whose name begins so")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="threads of the timed parts")
    parser.add_argument("--seconds", type=float, default=25.0, help="how long the steps of a timed part take turns")
    parser.add_argument("--budgets", type=int, default=20, help="budgets from the least to 100 %%")
    parser.add_argument("--quick", action="store_true", help="few budgets, few rounds")
    parser.add_argument("--resume", type=Path, metavar="FOLDER", help="keep finished parts there, and take those found there")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="of the parts named peers:")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        run_one_part(options)
        return

    about = machine(options.threads)
    arguments = ["--seconds", str(options.seconds), "--budgets", str(options.budgets), "--device", options.device]
    arguments += ["--quick"] if options.quick else []
    if options.resume is not None:
        options.resume.mkdir(parents=True, exist_ok=True)
    untimed = [name for name in untimed_parts(options) if name.startswith(options.only)]
    timed = [name for name in timed_parts(options) if name.startswith(options.only)]
    with ThreadPoolExecutor(max_workers=max(1, min(2, os.cpu_count() or 1))) as pool:
        parts = list(pool.map(lambda name: run_apart(name, 1, arguments, options.resume), untimed))
    parts += [run_apart(name, options.threads, arguments, options.resume) for name in timed]
    publish(options.name, "Training", about, parts, options.write)
    if options.write:
        write_page(RESULTS / f"{options.name}.html", "Training", about, parts)


if __name__ == "__main__":
    main()
