"""Every planner on every instance, held against each other and against what others have published (`make bench-planners`).

python bench/planners.py                        all of it; about an hour on two quiet cores
python bench/planners.py --write                stores it in bench/results/planners.json, .md and .html too
python bench/planners.py --quick                a few small instances, in two minutes
python bench/planners.py --graphs gpt2_large,resnet101 --only sweep,paper --planners auto,rotor --budgets 8
python bench/planners.py --instances FOLDER     reads further graphs in node-link form, as Moccasin and Checkmate publish them

A run that was broken off goes on where it was; another build of the command starts afresh. See planner_instances.py for the
instances, planner_sweep.py for the comparison; planner_targets.py, planner_times.py and planner_published.py for what has to be
reached.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import planner_targets
import planner_times
from planner_factors import average_cost, average_jobs, factors
from planner_instances import INSTANCES, Instance, default_cache, default_command, graph_file, published
from planner_plots import page
from planner_published import published_section
from planner_runs import Outcome, Runner, planner_names
from planner_sweep import AUTO, LEFT_OUT, MOST_OPS, floor_jobs, floors_of, report_sweep, sweep_jobs
from report import RESULTS, Part, Table, machine, publish

QUICK = ["gpt2_2_layers", "resnet50", "random_layered_100", "checkmate_vgg16", "checkmate_unet"]
NAMES = ["depth", "scale", "paper", "prototype", "levels", "published", "sweep"]


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help=f"sections, separated by commas: {', '.join(NAMES)}")
    parser.add_argument("--graphs", help="instances, separated by commas; bench/planner_instances.py lists them")
    parser.add_argument("--planners", help="planners, separated by commas; auto always takes part")
    parser.add_argument("--instances", type=Path, help="folder of further graphs in node-link form")
    parser.add_argument("--budgets", type=int, default=20, help="budgets from 100 %% down to the least (20)")
    parser.add_argument(
        "--time-limit",
        type=float,
        default=2.0,
        help="seconds for one planner at one budget on a small graph; more by 1 for 1000 ops (2)",
    )
    parser.add_argument(
        "--processes", type=int, default=2, help="planners at once, one thread each (2); auto has two, and runs alone"
    )
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no more runs after as many minutes (60)")
    parser.add_argument("--quick", action="store_true", help="a few small instances, six budgets, one second each")
    parser.add_argument("--fresh", action="store_true", help="forget what an earlier run of the same build has found")
    parser.add_argument("--command", type=Path, default=default_command(), help="the rockmate command")
    parser.add_argument("--work", type=Path, default=default_cache().parent, help="folder of graphs and unfinished results")
    parser.add_argument("--write", action="store_true", help="store the results in bench/results")
    parser.add_argument("--name", default="planners", help="name of the stored results")
    options = parser.parse_args(arguments)
    if options.quick:
        options.budgets, options.time_limit = min(options.budgets, 6), min(options.time_limit, 1.0)
    unknown = [name for name in listed(options.only, NAMES) if name not in NAMES]
    if unknown:
        parser.error(f"there is no section {unknown[0]}; the sections are {', '.join(NAMES)}")
    return options


def listed(text: str | None, default: Sequence[str]) -> list[str]:
    return list(default) if text is None else [name.strip() for name in text.split(",") if name.strip()]


def chosen_instances(options: argparse.Namespace) -> list[Instance]:
    theirs = {instance.name: instance for instance in published(options.instances)} if options.instances else {}
    known = {**INSTANCES, **theirs}
    names = listed(options.graphs, [*QUICK, *theirs] if options.quick else list(known))
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"there is no instance {unknown[0]}; the instances are {', '.join(known)}")
    return [known[name] for name in names]


def run(options: argparse.Namespace) -> tuple[list[Part], list[Outcome], list[str], int]:
    """Tables and targets, the runs of the sweep, the planners, and how many runs were left out for lack of time."""
    known = planner_names(options.command)
    planners = [name for name in known if name == AUTO or name in listed(options.planners, known)]
    instances = chosen_instances(options)
    graphs = {i.name: graph_file(i, options.work / "graphs", options.command) for i in instances}
    runner = Runner(options.command, graphs, options.work, options.processes, options.fresh)
    runner.ends_at = time.monotonic() + 60 * options.minutes
    wanted = listed(options.only, NAMES)
    limit_s = options.time_limit
    graph_names = {i.name: i.what for i in instances if i.family == "published"}

    parts: list[Part] = []
    for section in [*planner_times.SECTIONS, *planner_targets.SECTIONS, published_section(graph_names)]:
        if section.name in wanted:
            jobs = section.jobs(runner, planners, limit_s)
            if jobs:
                runner.processes = 1 if section.alone else options.processes
                parts.append(section.report(runner.run(jobs)))

    swept: list[Outcome] = []
    if "sweep" in wanted:
        runner.processes = options.processes
        taking_part = [name for name in graphs if runner.num_ops(name) <= MOST_OPS]
        if options.graphs is None:
            taking_part = [name for name in taking_part if name not in LEFT_OUT]
        floors = floors_of(runner, runner.run(floor_jobs(runner, taking_part, limit_s)).values())
        swept = list(runner.run(sweep_jobs(runner, floors, planners, options.budgets, limit_s)).values())
        order = {name: i for i, name in enumerate(graphs)}
        swept.sort(key=lambda o: (order[o.job.instance], -o.job.share))
        models = [i.name for i in instances if i.family == "model" and i.name in taking_part]
        every = [*swept, *runner.run(average_jobs(runner, models, limit_s)).values()]
        part = factors(every, models)
        part.targets += average_cost(every, models)
        parts += [part, report_sweep(swept, planners)]
    parts.append(Part([_instance_table(instances, runner)]))
    return parts, swept, planners, runner.left_out


def _instance_table(instances: Sequence[Instance], runner: Runner) -> Table:
    rows = []
    for instance in instances:
        peak, time_us = runner.store_all(instance.name)
        rows.append(
            {
                "name": instance.name,
                "what": instance.what,
                "ops": runner.num_ops(instance.name),
                "peak": peak,
                "time": time_us / 1e3 if instance.family == "model" else None,
            }
        )
    columns = [
        ("name", "instance", "{}"),
        ("what", "what it is", "{}"),
        ("ops", "ops", "{:,d}"),
        ("peak", "store-all peak", "bytes"),
        ("time", "V100 step, ms", "{:.1f}"),
    ]
    return Table("Instances", columns, rows)


def main() -> None:
    options = parse()
    begin = time.perf_counter()
    about = {
        **machine(1),
        "processes": options.processes,
        "time_limit_s": options.time_limit,
        "budgets": options.budgets,
        "sections": ", ".join(listed(options.only, NAMES)),
    }
    parts, swept, planners, left_out = run(options)
    if left_out:
        about["runs_left_out"] = left_out
    about["minutes"] = round((time.perf_counter() - begin) / 60, 1)
    publish(options.name, "Planners", about, parts, options.write)
    html = page("Planners", about, parts, swept, planners)
    file = (RESULTS if options.write else options.work) / f"{options.name}.html"
    file.write_text(html)
    print(f"pictures: {file}", file=sys.stderr)
    if options.write:
        file = RESULTS / f"{options.name}.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "sweep": compact(swept)}) + "\n")


def compact(outcomes: Sequence[Outcome]) -> dict[str, list[Any]]:
    """All runs of the sweep, a list for each field."""
    fields = ("status", "overhead", "peak_bytes", "budget_bytes", "lower_bound", "plan_seconds")
    columns: dict[str, list[Any]] = {
        name: [getattr(o.job, name) for o in outcomes] for name in ("instance", "planner", "share")
    }
    for name in fields:
        values = (getattr(o, name) for o in outcomes)
        columns[name] = [round(value, 6) if isinstance(value, float) else value for value in values]
    return columns


if __name__ == "__main__":
    main()
