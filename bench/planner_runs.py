"""Runs of the ``rockmate`` command: each in a process of its own, measured, and remembered so that a broken-off run goes on.

Results lie one a line in a file named after the command's own bytes: another build starts afresh.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

GRACE_S = 30.0  # beyond its time limit, reading the graph and all; then a run is ended and counts as "killed"
UNLIMITED_S = 180.0  # the same for runs without a limit
_LOOK_EVERY_S = 0.02


@dataclass(frozen=True)
class Job:
    """One question to one planner. ``share`` is the budget as a share of the store-all peak; without a time limit the planner
    ends when it thinks that it is done."""

    instance: str
    planner: str
    share: float
    time_limit_s: float | None
    threads: int = 1
    arguments: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True)
class Outcome:
    """What came of it. ``overhead`` and ``peak_bytes`` are there when ``status`` is "optimal" or "feasible"; "time_limit" means
    stopped without a plan, "killed" that it had to be ended, "failed" that it broke."""

    job: Job
    status: str
    overhead: float | None
    peak_bytes: int | None
    budget_bytes: int
    store_all_peak_bytes: int
    lower_bound: float | None
    min_budget_bytes: int | None
    min_budget_bound_bytes: int | None  # no schedule of the graph has a lower peak
    plan_seconds: float
    wall_s: float
    cpu_s: float
    resident_bytes: int
    note: str

    @property
    def found(self) -> bool:
        return self.overhead is not None

    @property
    def proved(self) -> bool:
        return self.status == "optimal"


class Runner:
    """Runs jobs, several at once, each result written as it comes."""

    def __init__(self, command: Path, graphs: dict[str, Path], folder: Path, processes: int, fresh: bool = False) -> None:
        self.command = command
        self.graphs = graphs
        self.processes = processes
        self.ends_at = math.inf  # of time.monotonic()
        self.left_out = 0
        digest = hashlib.sha256(command.read_bytes()).hexdigest()[:16]
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / f"runs_{digest}.jsonl"
        if fresh:
            self._file.unlink(missing_ok=True)
        self._lock = threading.Lock()
        self._known = self._remembered()
        self._sizes = {name: graph_facts(command, file) for name, file in graphs.items()}

    def store_all(self, instance: str) -> tuple[int, float]:
        """Peak in bytes and time in microseconds without recomputation."""
        facts = self._sizes[instance]
        return int(facts["store_all_peak_bytes"]), float(facts["store_all_time_us"])

    def num_ops(self, instance: str) -> int:
        facts = self._sizes[instance]
        return int(facts["num_forward_ops"]) + int(facts["num_backward_ops"])

    def run(self, jobs: Iterable[Job]) -> dict[Job, Outcome]:
        """In the order given: first those of one thread, several at once, then the others, one at a time.

        What has not begun when the time is up is left out, and counted in ``left_out``.
        """
        distinct = list(dict.fromkeys(jobs))
        waiting = [job for job in distinct if job.key not in self._known]
        done = 0

        def one(job: Job) -> None:
            nonlocal done
            if time.monotonic() > self.ends_at:
                with self._lock:
                    self.left_out += 1
                return
            outcome = self._ask(job)
            with self._lock:
                done += 1
                self._known[job.key] = outcome
                with self._file.open("a") as file:
                    file.write(json.dumps(asdict(outcome)) + "\n")
                shown = f"{outcome.overhead:8.2%}" if outcome.overhead is not None else f"{outcome.status:>10}"
                what = f"{job.instance:24} {job.planner:14} {job.share:6.1%} {shown:>10} {outcome.wall_s:6.1f} s"
                print(f"[{done}/{len(waiting)}] {what}", file=sys.stderr, flush=True)

        with ThreadPoolExecutor(self.processes) as pool:
            list(pool.map(one, (job for job in waiting if job.threads == 1)))
        for job in waiting:
            if job.threads > 1:
                one(job)
        return {job: self._known[job.key] for job in distinct if job.key in self._known}

    def _remembered(self) -> dict[str, Outcome]:
        known: dict[str, Outcome] = {}
        fields = {field.name for field in dataclasses.fields(Outcome)} - {"job"}
        if self._file.exists():
            for line in self._file.read_text().splitlines():
                try:
                    row = json.loads(line)
                except ValueError:
                    continue  # broken off in the middle of a line
                job = Job(**{**row.pop("job")})
                job = Job(**{**asdict(job), "arguments": tuple(job.arguments)})
                if row.keys() == fields:
                    known[job.key] = Outcome(job=job, **row)
        return known

    def _ask(self, job: Job) -> Outcome:
        plain_peak, _ = self.store_all(job.instance)
        budget = max(int(job.share * plain_peak), 1)
        arguments = ["plan", str(self.graphs[job.instance]), "-b", str(budget), "-p", job.planner, "--json"]
        arguments += ["--threads", str(job.threads), *job.arguments]
        if job.time_limit_s is not None:
            arguments += ["--time-limit", str(job.time_limit_s)]
        limit_s = UNLIMITED_S if job.time_limit_s is None else job.time_limit_s + GRACE_S
        answer, usage, fault = ask([str(self.command), *arguments], limit_s)
        if answer is None:
            return Outcome(job, fault, None, None, budget, plain_peak, None, None, None, usage.wall_s, note="", **asdict(usage))
        return Outcome(
            job=job,
            status=answer["status"],
            overhead=answer["overhead"],
            peak_bytes=answer["peak_bytes"],
            budget_bytes=budget,
            store_all_peak_bytes=plain_peak,
            lower_bound=answer["lower_bound"],
            min_budget_bytes=answer["min_budget_bytes"],
            min_budget_bound_bytes=answer["min_budget_bound_bytes"],
            plan_seconds=answer["plan_seconds"],
            note=answer["note"],
            **asdict(usage),
        )


@dataclass
class Usage:
    """What a process has used. ``cpu_s`` and ``resident_bytes`` (the most at once) as last seen before it ended."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    resident_bytes: int = 0

    def look(self, pid: int) -> None:
        """Only where the system has /proc. (What wait4 tells of a child is no less than what its parent had at the start.)"""
        try:
            status = Path(f"/proc/{pid}/status").read_text()
            times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return
        peak = next((line for line in status.splitlines() if line.startswith("VmHWM:")), "VmHWM: 0 kB")
        self.resident_bytes = max(self.resident_bytes, int(peak.split()[1]) * 1024)
        self.cpu_s = max(self.cpu_s, (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK"))


def ask(command: Sequence[str], limit_s: float) -> tuple[dict[str, Any] | None, Usage, str]:
    """The JSON that the command prints, what it used, and what went wrong, if anything: "killed" or "failed"."""
    begin, usage, fault = time.perf_counter(), Usage(), ""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(command, stdout=out, stderr=errors) as process:
            try:
                while process.poll() is None:
                    usage.look(process.pid)
                    if not fault and time.perf_counter() - begin > limit_s:
                        fault = "killed"
                        process.kill()
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(_LOOK_EVERY_S)
            except BaseException:
                process.kill()
                raise
        usage.wall_s = time.perf_counter() - begin
        if fault:
            return None, usage, fault
        out.seek(0)
        try:
            return json.loads(out.read()), usage, ""
        except ValueError:
            errors.seek(0)
            print(f"{' '.join(command)}: exit {process.returncode}: {errors.read()[-400:]}", file=sys.stderr)
            return None, usage, "failed"


def graph_facts(command: Path, file: Path) -> dict[str, Any]:
    shown = subprocess.run([str(command), "show", str(file), "--json"], check=True, stdout=subprocess.PIPE, text=True)
    facts: dict[str, Any] = json.loads(shown.stdout)
    return facts


def planner_names(command: Path) -> list[str]:
    """All planners that the command knows: what it lists when asked for one that there isn't."""
    graph = {
        "format": "rockmate-graph",
        "version": 1,
        "name": "one",
        "device": "cpu",
        "values": [{"name": "y", "bytes": 1, "kind": "activation", "retention": "step_end", "producer": 0}],
        "ops": [{"name": "f", "target": "f", "pass": "forward", "inputs": [], "outputs": [0], "time_us": 1}],
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "one.json"
        file.write_text(json.dumps(graph))
        question = [str(command), "plan", str(file), "-b", "100%", "-p", "?"]
        asked = subprocess.run(question, capture_output=True, text=True)
    _, found, names = asked.stderr.partition("choose one of ")
    if not found:
        raise RuntimeError(f"{command} plan: {asked.stderr}")
    return [name.strip() for name in names.split(",")]
