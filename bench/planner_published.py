"""`auto` on the published instances, and on generated ones of the same kind, against what others have reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner_runs import Job, Runner
from planner_sections import Outcomes, Section, percent
from planner_sweep import AUTO, AUTO_THREADS
from published_results import SAME_KIND, Published, published_for
from report import Part, Table, Target


def published_section(graph_names: Mapping[str, str]) -> Section:
    """``graph_names``: for each instance, the name that its file gives the graph."""

    def figures(instance: str) -> list[Published]:
        return published_for(SAME_KIND.get(instance, graph_names.get(instance, "")))

    def seconds_for(figure: Published, limit_s: float) -> float:
        """As long as theirs took, but no more than sixteen usual runs. What is left of it goes into reading the graph."""
        return min(0.9 * figure.seconds, 16 * limit_s) if figure.seconds else 8 * limit_s

    def jobs(runner: Runner, planners: Sequence[str], limit_s: float) -> list[Job]:
        return [
            Job(instance, AUTO, figure.share, seconds_for(figure, limit_s), AUTO_THREADS)
            for instance in runner.graphs
            for figure in figures(instance)
            if not (instance in SAME_KIND and figure.proved)
        ]

    def report(outcomes: Outcomes) -> Part:
        part = Part()
        rows = []
        for job, o in outcomes.items():
            for figure in (f for f in figures(job.instance) if f.share == job.share):
                same = job.instance not in SAME_KIND
                rows.append(
                    {
                        "instance": job.instance,
                        "share": job.share,
                        "auto": o.overhead,
                        "seconds": o.plan_seconds,
                        "figure": figure.overhead,
                        "its_seconds": figure.seconds or None,
                        "source": figure.source + ("" if same else ", another draw"),
                        "proved": figure.proved,
                    }
                )
                reached = o.overhead is not None and o.overhead <= figure.overhead + 5e-6
                in_time = not (figure.proved and figure.seconds) or o.plan_seconds <= figure.seconds
                aim = f"{'≤' if figure.proved else '<'} {figure.overhead:.3%}" + (
                    f" in {figure.seconds:.0f} s" if figure.seconds else ""
                )
                if not figure.proved:
                    reached = o.overhead is not None and o.overhead < figure.overhead
                shown = f"{percent(o.overhead)} in {o.plan_seconds:.1f} s"
                what = f"{job.instance} at {job.share:.0%} against {figure.source}" + ("" if same else " (another draw)")
                part.targets.append(Target(what, aim, shown, reached and in_time))
        columns = [
            ("instance", "instance", "{}"),
            ("share", "budget", "{:.0%}"),
            ("auto", "auto", "{:.3%}"),
            ("seconds", "s", "{:.1f}"),
            ("figure", "published", "{:.3%}"),
            ("its_seconds", "s", "{:.0f}"),
            ("source", "by", "{}"),
            ("proved", "proved", "yes/no"),
        ]
        part.tables.append(Table("Against published figures (overhead)", columns, rows))
        return part

    return Section("published", jobs, report)
