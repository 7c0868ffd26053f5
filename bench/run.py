"""Every benchmark, one after the other, stored in bench/results with machine and date (`make bench`).

Run it on a quiet machine: it times things. About 40 minutes on two cores.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import torch
from report import RESULTS, machine

BENCH = Path(__file__).parent


def run(script: str, *arguments: str) -> None:
    subprocess.run([sys.executable, str(BENCH / script), *arguments], check=True)


def run_executor() -> None:
    """bench/executor.py prints; what it prints is stored."""
    done = subprocess.run([sys.executable, str(BENCH / "executor.py")], check=True, stdout=subprocess.PIPE, text=True)
    print(done.stdout)
    about = machine(1)
    where = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in about.items())
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "executor.md").write_text(f"# Executor\n\n{where}\n\n```\n{done.stdout}```\n")


def main() -> None:
    print(f"torch {torch.__version__}, {os.cpu_count()} cores", flush=True)
    run_executor()
    run("planning.py", "--write")
    run("training.py", "--write")


if __name__ == "__main__":
    main()
